// Runs the threads of a Metal kernel on the host.
//
// A kernel without barriers and simd operations is a loop over threads. Others get a fiber for each thread of
// a threadgroup: a fiber runs until it waits at a barrier or simd operation, and the scheduler lets it go on
// when those it waits for have come. One host thread runs a threadgroup; the state below is its own.
#include "faults.h"
#include "fibers.h"
#include "state.h"

namespace {

// ---- What kernels ask for ----------------------------------------------------------------------------

Fiber& waiting(State state, uint32_t site) {
  if (!worker->launch->fibers) fail("a barrier or simd operation in a kernel that was compiled without them");
  Fiber& f = *worker->current;
  f.state = state;
  f.site = site;
  return f;
}

void threadgroup_barrier(unsigned line) {
  waiting(AT_BARRIER, line);
  to_scheduler();
}

const void* exchange(const void* operand, unsigned size, unsigned site, unsigned whole, unsigned* lanes) {
  Fiber& f = waiting(AT_SIMD, site);
  f.operand = operand;
  f.size = size;
  f.whole = whole;
  to_scheduler();
  *lanes = f.lanes;
  return worker->operands;
}

unsigned lane() { return worker->launch->fibers ? worker->current->context.lane : 0; }

void* variable(std::vector<Variable>& all, uint32_t id, size_t size, const char* what) {
  Worker& w = *worker;
  if (all.size() <= id) all.resize(id + 1);
  Variable& v = all[id];
  if (v.group == w.groups) return v.data();
  w.threadgroup_bytes += round_up(size, 16);
  if (w.threadgroup_bytes > MAX_THREADGROUP_BYTES)
    fail("%zu bytes of threadgroup memory, of which there are %zu", w.threadgroup_bytes, MAX_THREADGROUP_BYTES);
  if (!v.memory.mapped || size > size_t(v.memory.end - v.memory.begin)) {
    v.memory.drop();
    if (!v.memory.make(size, 65536)) fail("no memory for %s", what);
  }
  v.size = size;
  v.group = w.groups;
  if (w.launch->poison) memset(v.data(), POISON, size);
  return v.data();
}

void* threadgroup_variable(unsigned id, unsigned long size) {
  return variable(worker->variables, id, size, "a threadgroup variable");
}

void* threadgroup_argument(unsigned index) {
  Worker& w = *worker;
  size_t size = index < BUFFERS ? w.launch->threadgroup_bytes[index] : 0;
  if (!size) fail("no length was given for [[threadgroup(%u)]]", index);
  return variable(w.arguments, index, size, "a threadgroup argument");
}

// ---- Scheduling --------------------------------------------------------------------------------------

/// The i-th of `count` in the launch's order, which `shuffle` must have made for SHUFFLED.
struct Permutation {
  uint32_t at[MAX_THREADS];
  void make(uint32_t count) {
    uint32_t order = worker->launch->order;
    for (uint32_t i = 0; i < count; i++) at[i] = order == REVERSE ? count - 1 - i : i;
    if (order != SHUFFLED) return;
    for (uint32_t i = count; i > 1; i--) {
      worker->random = worker->random * 1664525u + 1013904223u;
      uint32_t j = (worker->random >> 8) % i, t = at[i - 1];
      at[i - 1] = at[j];
      at[j] = t;
    }
  }
};

/// Lets the lanes that wait at the earliest place in the text have each other's operands.
bool release_simd(Worker& w, uint32_t first, uint32_t count) {
  uint32_t site = UINT32_MAX, size = 0, whole = 0, lanes = 0;
  for (uint32_t i = 0; i < count; i++) {
    Fiber& f = w.fibers[first + i];
    if (f.state != AT_SIMD) continue;
    if (f.site < site) site = f.site, size = f.size, whole = f.whole, lanes = 0;
    if (f.site == site && f.size == size) lanes |= 1u << i;
  }
  if (!lanes) return false;
  uint32_t all = count == LANES ? UINT32_MAX : (1u << count) - 1;
  if (whole && lanes != all)
    fail("divergent %s at line %u: lanes %#x of simdgroup %u are there, the others are elsewhere or have finished",
         whole == 1 ? "simdgroup matrix operation" : "simdgroup_barrier", site / smelt::OPERATIONS, lanes, first / LANES);
  if (whole == 1 && count != LANES) fail("a simdgroup matrix operation with %u of 32 lanes, at line %u", count, site / smelt::OPERATIONS);
  if (lanes != UINT32_MAX) memset(w.operands, POISON, LANES * size);
  for (uint32_t i = 0; i < count; i++)
    if (lanes >> i & 1u) {
      Fiber& f = w.fibers[first + i];
      memcpy(w.operands + i * size, f.operand, size);
      f.lanes = lanes;
      f.state = READY;
    }
  return true;
}

void run_fibers(Worker& w, uint32_t count) {
  uint32_t simdgroups = (count + LANES - 1) / LANES;
  static thread_local Permutation groups, lanes;
  bool fixed = w.launch->order != SHUFFLED;
  groups.make(simdgroups);
  for (;;) {
    if (!fixed) groups.make(simdgroups);
    for (uint32_t g = 0; g < simdgroups; g++) {
      uint32_t first = groups.at[g] * LANES, size = count - first < LANES ? count - first : uint32_t(LANES);
      do {
        lanes.make(size);
        for (uint32_t i = 0; i < size; i++) {
          Fiber& f = w.fibers[first + lanes.at[i]];
          if (f.state == READY) to_fiber(f);
        }
      } while (release_simd(w, first, size));
    }
    uint32_t done = 0, line = 0, other = 0;
    for (uint32_t i = 0; i < count; i++) {
      Fiber& f = w.fibers[i];
      if (f.state == DONE) done++;
      else if (!line) line = f.site;
      else if (f.site != line) other = f.site;
    }
    if (done == count) return;
    if (done) fail("divergent barrier: %u threads wait at line %u, %u have finished", count - done, line, done);
    if (other) fail("divergent barrier: some threads wait at line %u, others at line %u", line, other);
    for (uint32_t i = 0; i < count; i++) w.fibers[i].state = READY;
  }
}

void start_fibers(Worker& w, const Context& c, uint32_t count) {
  if (w.fibers.size() < count) w.fibers.resize(count);
  for (uint32_t i = 0; i < count; i++) {
    Fiber& f = w.fibers[i];
    if (!f.stack.mapped && !f.stack.make(STACK_BYTES, page())) fail("no memory for the stacks of %u threads", count);
    Context& t = f.context;
    t = c;
    t.index = i;
    t.lane = i % LANES;
    t.simdgroup = i / LANES;
    uint32_t position[3] = {i % c.threads[0], i / c.threads[0] % c.threads[1], i / c.threads[0] / c.threads[1]};
    for (int k = 0; k < 3; k++) {
      t.position_in_threadgroup[k] = position[k];
      t.position_in_grid[k] = c.threadgroup_position[k] * c.full_threads[k] + position[k];
    }
    f.state = READY;
    prepare(f, i);
  }
  w.current = nullptr;
  run_fibers(w, count);
  w.current = nullptr;
}

void run_loop(Worker& w, uint32_t count) {
  Context& c = w.group;
  auto entry = reinterpret_cast<void (*)(const Context*, unsigned)>(w.launch->entry);
  bool whole_rows = w.launch->order == FORWARD && !w.launch->guard;
  static thread_local Permutation order;
  uint32_t row = whole_rows ? c.threads[0] : 1, calls = count / row;
  order.make(calls);
  for (uint32_t n = 0; n < calls; n++) {
    uint32_t i = order.at[n] * row;
    uint32_t position[3] = {i % c.threads[0], i / c.threads[0] % c.threads[1], i / c.threads[0] / c.threads[1]};
    for (int k = 0; k < 3; k++) {
      c.position_in_threadgroup[k] = position[k];
      c.position_in_grid[k] = c.threadgroup_position[k] * c.full_threads[k] + position[k];
    }
    c.index = i;
    entry(&c, row);
  }
}

void run_threadgroups(Worker& w) {
  SmeltLaunch& l = *w.launch;
  uint64_t groups = uint64_t(l.threadgroups[0]) * l.threadgroups[1] * l.threadgroups[2];
  // Shuffled: a step that shares no factor with the number of threadgroups reaches each of them once.
  uint64_t step = 1, start = 0;
  if (l.order == SHUFFLED && groups > 2) {
    start = (l.seed * UINT64_C(2654435761)) % groups;
    for (step = groups / 2 + l.seed % groups % 7 + 1;; step++) {
      uint64_t a = groups, b = step % groups;
      if (!b) continue;
      while (b) { uint64_t t = a % b; a = b; b = t; }
      if (a == 1) break;
    }
  }
  for (uint64_t n = 0; n < groups; n++) {
    uint64_t g = l.order == REVERSE ? groups - 1 - n : (start + n * (step % groups ? step % groups : 1)) % groups;
    Context& c = w.group;
    memset(&c, 0, sizeof c);
    uint32_t count = 1;
    uint64_t position[3] = {g % l.threadgroups[0], g / l.threadgroups[0] % l.threadgroups[1],
                            g / l.threadgroups[0] / l.threadgroups[1]};
    for (int k = 0; k < 3; k++) {
      c.threadgroup_position[k] = uint32_t(position[k]);
      c.threadgroups[k] = l.threadgroups[k];
      c.grid[k] = l.grid[k];
      c.full_threads[k] = l.threads[k];
      uint64_t left = l.grid[k] - position[k] * l.threads[k];
      c.threads[k] = left < l.threads[k] ? uint32_t(left) : l.threads[k];
      count *= c.threads[k];
    }
    c.simdgroups = (count + LANES - 1) / LANES;
    c.buffers = l.buffers;
    w.groups++;
    w.threadgroup_bytes = 0;
    if (l.fibers) start_fibers(w, c, count);
    else run_loop(w, count);
  }
}

}  // namespace

extern "C" {

extern const smelt::Runtime smelt_functions;
const smelt::Runtime smelt_functions = {threadgroup_barrier, exchange, lane, threadgroup_variable, threadgroup_argument};

/// Runs a launch on the calling thread. Returns 0, or 1 with a message.
int smelt_launch(SmeltLaunch* launch) {
  worker = &worker_of_thread;
  Worker& w = *worker;
  if (w.running) {
    snprintf(launch->message, sizeof launch->message, "a launch within a launch");
    return 1;
  }
  launch->message[0] = 0;
  w.launch = launch;
  w.current = nullptr;
  w.random = launch->seed * 2654435761u + 1u;
  memset(&w.group, 0, sizeof w.group);
  Catch faults;
  if (launch->guard) {
    w.guarded.resize(BUFFERS);
    for (uint32_t i = 0; i < BUFFERS; i++)
      if (launch->buffers[i] && !guard_buffer(w, i)) {
        snprintf(launch->message, sizeof launch->message, "no memory for a guarded copy of buffer(%u)", i);
        unguard(w, false);
        return 1;
      }
  }
  int stopped = sigsetjmp(w.stop, 0);
  if (!stopped) {
    w.running = true;
    run_threadgroups(w);
    if (launch->guard) check_surroundings(w);
  } else if (stopped == 2) {
    explain(w);
  }
  w.running = false;
  w.current = nullptr;
  if (launch->guard) unguard(w, !stopped);
  return launch->message[0] ? 1 : 0;
}

}  // extern "C"
