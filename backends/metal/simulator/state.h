// What the parts of the simulator share: the launch, fibers, memory, and the state of a host thread.
#pragma once

#include <cinttypes>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "smelt_runtime.h"

using smelt::BUFFERS;
using smelt::Context;
using smelt::LANES;
using smelt::OPERAND_BYTES;

namespace {

enum Order : uint32_t { FORWARD, REVERSE, SHUFFLED };
constexpr uint32_t MAX_THREADS = 1024;
constexpr size_t MAX_THREADGROUP_BYTES = 32768, STACK_BYTES = 128 << 10, GUARD_BYTES = 16 << 20;
constexpr unsigned char POISON = 0xff;    // NaN in every floating-point type

}  // namespace

extern "C" {
/// One launch, as the caller describes it. `message` tells what went wrong.
struct SmeltLaunch {
  void* entry;       // void (const Context*), or void (const Context*, unsigned count) for loops
  uint32_t fibers;   // whether the kernel has barriers or simd operations
  uint32_t order, seed, poison, guard;
  uint32_t writable;  // bit i: the kernel may write buffer i
  uint32_t threads[3], threadgroups[3], grid[3];
  void* buffers[BUFFERS];
  uint64_t bytes[BUFFERS];
  uint64_t threadgroup_bytes[BUFFERS];
  char message[512];
};
}

namespace {

size_t page() {
  static const size_t size = size_t(sysconf(_SC_PAGESIZE));
  return size;
}

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

/// Memory between two stretches that nobody may touch. `begin` lies on a page, `end` too.
struct Fenced {
  char *map = nullptr, *begin = nullptr, *end = nullptr;
  size_t mapped = 0;
  bool make(size_t bytes, size_t fence) {
    fence = round_up(fence, page());
    size_t inner = round_up(bytes ? bytes : 1, page());
    mapped = inner + 2 * fence;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_NORESERVE
    flags |= MAP_NORESERVE;
#endif
    void* p = mmap(nullptr, mapped, PROT_NONE, flags, -1, 0);
    if (p == MAP_FAILED) return mapped = 0, false;
    map = static_cast<char*>(p);
    begin = map + fence;
    end = begin + inner;
    return mprotect(begin, inner, PROT_READ | PROT_WRITE) == 0;
  }
  void drop() {
    if (mapped) munmap(map, mapped);
    *this = Fenced();
  }
  bool holds(const char* p) const { return mapped && p >= map && p < map + mapped; }
};

enum State : uint8_t { READY, AT_SIMD, AT_BARRIER, DONE };

struct Fiber {
  void* stack_pointer = nullptr;
  Fenced stack;
  Context context;
  State state = DONE;
  uint32_t site = 0, size = 0, whole = 0, lanes = 0;
  const void* operand = nullptr;
};

/// A threadgroup variable: the memory ends at a fence.
struct Variable {
  Fenced memory;
  size_t size = 0;
  uint64_t group = 0;  // the threadgroup that it was last made for
  char* data() const { return memory.end - round_up(size, 16); }
};

struct Guarded {
  Fenced memory;
  char* data = nullptr;
  size_t bytes = 0;
  void* original = nullptr;
};

/// All that a host thread has at hand for launches.
struct Worker {
  SmeltLaunch* launch = nullptr;
  Fiber* current = nullptr;
  void* scheduler = nullptr;  // its stack pointer, while a fiber runs
  std::vector<Fiber> fibers;
  std::vector<Variable> variables, arguments;
  std::vector<Guarded> guarded;
  Context group;        // the running threadgroup; in loops, the running row of threads
  uint64_t groups = 0;  // threadgroups so far
  size_t threadgroup_bytes = 0;
  uint32_t random = 1;
  sigjmp_buf stop;
  volatile bool running = false;
  int signal = 0;
  void* address = nullptr;
  Fenced signal_stack;
  alignas(64) char operands[LANES * OPERAND_BYTES];
  ~Worker() {
    for (Fiber& f : fibers) f.stack.drop();
    for (Variable& v : variables) v.memory.drop();
    for (Variable& v : arguments) v.memory.drop();
    for (Guarded& g : guarded) g.memory.drop();
    signal_stack.drop();
  }
};
thread_local Worker worker_of_thread;
thread_local Worker* worker = nullptr;

/// Ends the launch with a message.
[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...) {
  Worker& w = *worker;
  const Context& c = w.group;
  char* out = w.launch->message;
  size_t room = sizeof w.launch->message;
  va_list values;
  va_start(values, format);
  int n = vsnprintf(out, room, format, values);
  va_end(values);
  if (n > 0 && size_t(n) < room)
    snprintf(out + n, room - size_t(n), "; in threadgroup (%u, %u, %u)", c.threadgroup_position[0],
             c.threadgroup_position[1], c.threadgroup_position[2]);
  siglongjmp(w.stop, 1);
}

}  // namespace
