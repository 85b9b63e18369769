// Accesses that nobody may make: signals, and buffers between fences.
#pragma once

#include "state.h"

namespace {

const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE};
constexpr int SIGNAL_COUNT = 5;
struct sigaction before[SIGNAL_COUNT];
std::mutex handlers;
int launches = 0;

/// A fault of a kernel goes back to its launch; any other goes where it would have gone.
void on_signal(int signal, siginfo_t* info, void* context) {
  Worker* w = worker;
  if (w && w->running) {
    w->running = false;
    w->signal = signal;
    w->address = info->si_addr;
    siglongjmp(w->stop, 2);
  }
  for (int i = 0; i < SIGNAL_COUNT; i++) {
    if (SIGNALS[i] != signal) continue;
    const struct sigaction& old = before[i];
    if (old.sa_flags & SA_SIGINFO) old.sa_sigaction(signal, info, context);
    else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) old.sa_handler(signal);
    else sigaction(signal, &old, nullptr);  // the instruction faults again, and the default takes it
  }
}

/// Catches faults while any launch runs; the handlers of before come back after the last.
struct Catch {
  stack_t old_stack;
  Catch() {
    Worker& w = *worker;
    if (!w.signal_stack.mapped) w.signal_stack.make(65536, page());
    stack_t stack;
    memset(&stack, 0, sizeof stack);
    stack.ss_sp = w.signal_stack.begin;
    stack.ss_size = size_t(w.signal_stack.end - w.signal_stack.begin);
    sigaltstack(&stack, &old_stack);
    std::lock_guard<std::mutex> lock(handlers);
    if (launches++) return;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNAL_COUNT; i++) sigaction(SIGNALS[i], &action, &before[i]);
  }
  ~Catch() {
    {
      std::lock_guard<std::mutex> lock(handlers);
      if (!--launches)
        for (int i = 0; i < SIGNAL_COUNT; i++) {
          struct sigaction now;
          // Whoever put a handler over ours keeps it.
          if (!sigaction(SIGNALS[i], nullptr, &now) && now.sa_sigaction == on_signal) sigaction(SIGNALS[i], &before[i], nullptr);
        }
    }
    sigaltstack(&old_stack, nullptr);
  }
};

/// Says what a signal was, as far as the address tells.
void explain(Worker& w) {
  SmeltLaunch& l = *w.launch;
  const char* address = static_cast<const char*>(w.address);
  const Context& c = w.current ? w.current->context : w.group;
  char what[256];
  snprintf(what, sizeof what, "an access to address %p", w.address);
  if (w.signal == SIGFPE) snprintf(what, sizeof what, "integer division by zero, or overflow in a division");
  else if (w.signal == SIGILL || w.signal == SIGTRAP)
    snprintf(what, sizeof what, "a misaligned access, or an index outside an array");
  else {
    for (size_t i = 0; i < w.guarded.size(); i++)
      if (w.guarded[i].memory.holds(address))
        snprintf(what, sizeof what, "an access out of bounds at byte %td of buffer(%zu), which has %zu bytes",
                 address - w.guarded[i].data, i, w.guarded[i].bytes);
    for (std::vector<Variable>* all : {&w.variables, &w.arguments})
      for (Variable& v : *all)
        if (v.memory.holds(address))
          snprintf(what, sizeof what, "an access out of bounds at byte %td of threadgroup memory that has %zu bytes",
                   address - v.data(), v.size);
    for (size_t i = 0; i < w.fibers.size(); i++)
      if (w.fibers[i].stack.holds(address)) snprintf(what, sizeof what, "thread %zu has more than %zu KB of variables", i, STACK_BYTES >> 10);
  }
  snprintf(l.message, sizeof l.message, "%s; in threadgroup (%u, %u, %u), thread (%u, %u, %u)%s", what,
           c.threadgroup_position[0], c.threadgroup_position[1], c.threadgroup_position[2], c.position_in_threadgroup[0],
           c.position_in_threadgroup[1], c.position_in_threadgroup[2],
           w.current || l.guard || l.order != FORWARD ? "" : " or one after it in its row");
}

/// Copies a buffer to memory that ends at a fence; it lies there as it does now, with regard to 16 bytes.
bool guard_buffer(Worker& w, uint32_t i) {
  SmeltLaunch& l = *w.launch;
  Guarded& g = w.guarded[i];
  g.original = l.buffers[i];
  g.bytes = l.bytes[i];
  for (uint32_t j = 0; j < i; j++)  // one memory bound twice stays one
    if (w.guarded[j].data && w.guarded[j].original == g.original && w.guarded[j].bytes == g.bytes) {
      l.buffers[i] = w.guarded[j].data;
      return true;
    }
  const size_t offset = reinterpret_cast<uintptr_t>(g.original) % 16;
  if (!g.memory.make(g.bytes + offset, GUARD_BYTES)) return false;
  memset(g.memory.begin, POISON, size_t(g.memory.end - g.memory.begin));
  g.data = g.memory.end - round_up(g.bytes + offset, 16) + offset;
  memcpy(g.data, g.original, g.bytes);
  l.buffers[i] = g.data;
  return true;
}

void check_surroundings(Worker& w) {
  for (size_t i = 0; i < w.guarded.size(); i++) {
    Guarded& g = w.guarded[i];
    if (!g.data) continue;
    for (char* p = g.memory.begin; p < g.memory.end; p++) {
      if (p == g.data) p += g.bytes;
      if (p < g.memory.end && static_cast<unsigned char>(*p) != POISON) {
        snprintf(w.launch->message, sizeof w.launch->message,
                 "a store out of bounds at byte %td of buffer(%zu), which has %zu bytes", p - g.data, i, g.bytes);
        return;
      }
    }
  }
}

void unguard(Worker& w, bool keep) {
  for (size_t i = 0; i < w.guarded.size(); i++) {
    Guarded& g = w.guarded[i];
    if (!g.original) continue;
    w.launch->buffers[i] = g.original;
    char* copy = g.data;
    for (size_t j = 0; j < i && !copy; j++)
      if (w.guarded[j].original == g.original) copy = w.guarded[j].data;
    if (keep && (w.launch->writable >> i & 1u)) memcpy(g.original, copy, g.bytes);
  }
  for (Guarded& g : w.guarded) g.memory.drop();
  w.guarded.clear();
}

}  // namespace
