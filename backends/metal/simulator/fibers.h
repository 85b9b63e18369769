// Switching between the stacks of threads.
#pragma once

#include "state.h"

namespace {

#if defined(__x86_64__) || defined(__aarch64__)
#ifdef __APPLE__
#define SYMBOL "_smelt_switch"
#else
#define SYMBOL "smelt_switch"
#endif
/// Saves what a call must keep on the stack, its end in `*from`, and goes on with stack `to`.
extern "C" void smelt_switch(void** from, void* to);
#if defined(__x86_64__)
asm(".text\n.globl " SYMBOL "\n" SYMBOL ":\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  retq\n");
constexpr size_t FRAME = 64, RETURN = 6;  // bytes that a switch pops, and the word it returns to
#else
asm(".text\n.globl " SYMBOL "\n.p2align 2\n" SYMBOL ":\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n  stp x25, x26, [sp, #48]\n"
    "  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
    "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
    "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
    "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n  ret\n");
constexpr size_t FRAME = 160, RETURN = 11;
#endif

void fiber_main();

void prepare(Fiber& f, uint32_t index) {
  // Tops differ by cache lines: else the fibers' frames would all fall on the same lines of the cache.
  uint64_t* sp = reinterpret_cast<uint64_t*>(f.stack.end - 64 * (index % 60 + 1) - FRAME);
  memset(sp, 0, FRAME);
  sp[RETURN] = reinterpret_cast<uint64_t>(&fiber_main);
  f.stack_pointer = sp;
}
void to_scheduler() { smelt_switch(&worker->current->stack_pointer, worker->scheduler); }
void to_fiber(Fiber& f) {
  worker->current = &f;
  smelt_switch(&worker->scheduler, f.stack_pointer);
}
#else
#include <ucontext.h>
// Slow, but everywhere.
void fiber_main();
void prepare(Fiber& f, uint32_t) {
  ucontext_t* u = reinterpret_cast<ucontext_t*>(f.stack.begin);
  getcontext(u);
  u->uc_stack.ss_sp = f.stack.begin + round_up(sizeof(ucontext_t), 64);
  u->uc_stack.ss_size = size_t(f.stack.end - static_cast<char*>(u->uc_stack.ss_sp));
  u->uc_link = nullptr;
  makecontext(u, fiber_main, 0);
  f.stack_pointer = u;
}
thread_local ucontext_t scheduler_context;
void to_scheduler() { swapcontext(static_cast<ucontext_t*>(worker->current->stack_pointer), &scheduler_context); }
void to_fiber(Fiber& f) {
  worker->current = &f;
  swapcontext(&scheduler_context, static_cast<ucontext_t*>(f.stack_pointer));
}
#endif

void fiber_main() {
  Fiber& f = *worker->current;
  reinterpret_cast<void (*)(const Context*)>(worker->launch->entry)(&f.context);
  f.state = DONE;
  to_scheduler();
  abort();
}

}  // namespace
