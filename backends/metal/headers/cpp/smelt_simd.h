// Barriers and what the 32 lanes of a simdgroup tell each other.
#pragma once

namespace metal {

enum class mem_flags : uint { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4, mem_threadgroup_imageblock = 8 };
SMELT_FUNCTION constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(uint(a) | uint(b)); }
SMELT_FUNCTION constexpr mem_flags operator&(mem_flags a, mem_flags b) { return mem_flags(uint(a) & uint(b)); }
enum memory_order { memory_order_relaxed = 0, memory_order_acquire = 2, memory_order_release = 3, memory_order_acq_rel = 4, memory_order_seq_cst = 5 };
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device, thread_scope_system };

}  // namespace metal

#ifdef SMELT_CUDA

#define SMELT_SITE
#define SMELT_SITE_AFTER
#define SMELT_PASS
namespace smelt {
SMELT_FUNCTION uint thread_index() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
SMELT_FUNCTION uint lane() { return thread_index() & 31u; }
// The lanes that the warp has: the operations stand in uniform control flow.
SMELT_FUNCTION uint active() {
  uint threads = blockDim.x * blockDim.y * blockDim.z, first = thread_index() & ~31u;
  return threads - first >= 32u ? 0xffffffffu : (1u << (threads - first)) - 1u;
}
template <class T> SMELT_FUNCTION T from_lane(const T& x, uint source, uint lanes) {
  if constexpr (sizeof(T) == 4) return copied_bits<T>(__shfl_sync(lanes, copied_bits<int>(x), int(source)));
  else if constexpr (sizeof(T) == 2) return copied_bits<T>(ushort(__shfl_sync(lanes, int(copied_bits<ushort>(x)), int(source))));
  else if constexpr (sizeof(T) == 1) return copied_bits<T>(uchar(__shfl_sync(lanes, int(copied_bits<uchar>(x)), int(source))));
  else {
    static_assert(sizeof(T) % 4 == 0, "lanes exchange 1, 2 or whole words of 4 bytes");
    struct Words { int word[sizeof(T) / 4]; } w = copied_bits<Words>(x);
    for (int i = 0; i < int(sizeof(T) / 4); i++) w.word[i] = __shfl_sync(lanes, w.word[i], int(source));
    return copied_bits<T>(w);
  }
}
/// The values of the active lanes: the same interface as on the host, by shuffles.
template <class T> struct Lanes {
  T own;
  uint lanes;
  SMELT_FUNCTION T operator[](uint i) const { return from_lane(own, i, lanes); }
};
template <class T> SMELT_FUNCTION Lanes<T> exchange(const T& x) { return Lanes<T>{x, active()}; }
template <class T> SMELT_FUNCTION Lanes<T> exchange_whole(const T& x) { return Lanes<T>{x, 0xffffffffu}; }
SMELT_FUNCTION uint first(uint lanes) { return uint(__ffs(int(lanes)) - 1); }
}  // namespace smelt
namespace metal {
SMELT_FUNCTION void threadgroup_barrier(mem_flags flags, memory_order = memory_order_seq_cst, thread_scope = thread_scope_threadgroup) {
  if (uint(flags) & 1u) __threadfence_block();
  __syncthreads();
}
SMELT_FUNCTION void simdgroup_barrier(mem_flags, memory_order = memory_order_seq_cst, thread_scope = thread_scope_simdgroup) { __syncwarp(smelt::active()); }
}  // namespace metal

#else

#include "smelt_runtime.h"
// Where in the text an operation stands: lanes of different branches do not meet in one operation.
#define SMELT_SITE uint site = uint(__builtin_LINE())
#define SMELT_SITE_AFTER , uint site = uint(__builtin_LINE())
#define SMELT_PASS , site
extern "C" const smelt::Runtime* smelt_runtime;
namespace smelt {
SMELT_FUNCTION uint lane() { return smelt_runtime->lane(); }
/// The values of the active lanes, valid until the thread's next operation.
template <class T> struct Lanes {
  const T* values;
  uint lanes;
  SMELT_FUNCTION const T& operator[](uint i) const { return values[i & 31u]; }
};
/// Its own line tells operations on one line of the text apart.
template <class T> SMELT_FUNCTION Lanes<T> exchange(const T& x, uint line, uint whole = 0, uint operation = uint(__builtin_LINE())) {
  static_assert(sizeof(T) <= OPERAND_BYTES, "operands of lanes have at most 64 bytes");
  uint lanes;
  const T* values = static_cast<const T*>(smelt_runtime->exchange(&x, sizeof(T), line * OPERATIONS + operation, whole, &lanes));
  return Lanes<T>{values, lanes};
}
template <class T> SMELT_FUNCTION Lanes<T> exchange_whole(const T& x, uint line) { return exchange(x, line, 1u); }
SMELT_FUNCTION uint first(uint lanes) { return uint(__builtin_ctz(lanes)); }
}  // namespace smelt
namespace metal {
SMELT_FUNCTION void threadgroup_barrier(mem_flags, uint line = uint(__builtin_LINE())) { smelt_runtime->threadgroup_barrier(line); }
SMELT_FUNCTION void threadgroup_barrier(mem_flags, memory_order, thread_scope = thread_scope_threadgroup, uint line = uint(__builtin_LINE())) { smelt_runtime->threadgroup_barrier(line); }
SMELT_FUNCTION void simdgroup_barrier(mem_flags, uint line = uint(__builtin_LINE())) { smelt::exchange(line, line, 2u); }
SMELT_FUNCTION void simdgroup_barrier(mem_flags, memory_order, thread_scope = thread_scope_simdgroup, uint line = uint(__builtin_LINE())) { smelt::exchange(line, line, 2u); }
}  // namespace metal

#endif

namespace metal {

// Reductions pair lanes 16 apart, then 8, 4, 2, 1, so that every machine rounds alike.
#ifdef SMELT_CUDA
#define SMELT_REDUCE_WHOLE(expression) \
  if (all.lanes == 0xffffffffu) { \
    T r = x; \
    for (uint d = 16u; d; d >>= 1) { T a = r, b = smelt::from_lane(r, smelt::lane() ^ d, 0xffffffffu); r = T(expression); } \
    return r; \
  }
#else
#define SMELT_REDUCE_WHOLE(expression) \
  if (all.lanes == 0xffffffffu) { \
    T t[16]; \
    for (uint i = 0; i < 16u; i++) { T a = all.values[i], b = all.values[i + 16u]; t[i] = T(expression); } \
    for (uint d = 8u; d; d >>= 1) for (uint i = 0; i < d; i++) { T a = t[i], b = t[i + d]; t[i] = T(expression); } \
    return t[0]; \
  }
#endif
#define SMELT_REDUCE(name, expression) \
  template <class T> SMELT_FUNCTION T simd_##name(T x SMELT_SITE_AFTER) { \
    auto all = smelt::exchange(x SMELT_PASS); \
    SMELT_REDUCE_WHOLE(expression) \
    uint first = smelt::first(all.lanes); \
    T r = all[first]; \
    for (uint i = first + 1u; i < 32u; i++) if (all.lanes >> i & 1u) { T a = r, b = all[i]; r = T(expression); } \
    return r; \
  } \
  template <class T> SMELT_FUNCTION T quad_##name(T x SMELT_SITE_AFTER) { \
    auto all = smelt::exchange(x SMELT_PASS); \
    uint base = smelt::lane() & ~3u; \
    T v[4]; \
    for (uint i = 0; i < 4u; i++) v[i] = all[base + i]; \
    uint have = (all.lanes >> base) & 15u, first = smelt::first(have); \
    T r = v[first]; \
    for (uint i = first + 1u; i < 4u; i++) if (have >> i & 1u) { T a = r, b = v[i]; r = T(expression); } \
    return r; \
  }
SMELT_REDUCE(sum, a + b)
SMELT_REDUCE(product, a * b)
SMELT_REDUCE(max, metal::max(a, b))
SMELT_REDUCE(min, metal::min(a, b))
SMELT_REDUCE(and, a & b)
SMELT_REDUCE(or, a | b)
SMELT_REDUCE(xor, a ^ b)
#undef SMELT_REDUCE
#undef SMELT_REDUCE_WHOLE

// `source` may lie outside the simdgroup or quad: then the lane keeps its own value.
#define SMELT_SHUFFLE(name, source) \
  template <class T> SMELT_FUNCTION T name(T x, ushort n SMELT_SITE_AFTER) { \
    int lane = int(smelt::lane()), from = source; \
    auto all = smelt::exchange(x SMELT_PASS); \
    T r = all[uint(from) & 31u]; \
    return from >= 0 && from < 32 ? r : x; \
  }
SMELT_SHUFFLE(simd_shuffle, int(n) + 0 * lane)
SMELT_SHUFFLE(simd_broadcast, int(n) + 0 * lane)
SMELT_SHUFFLE(simd_shuffle_xor, lane ^ int(n))
SMELT_SHUFFLE(simd_shuffle_up, lane - int(n))
SMELT_SHUFFLE(simd_shuffle_down, lane + int(n))
SMELT_SHUFFLE(simd_shuffle_rotate_up, (lane - int(n)) & 31)
SMELT_SHUFFLE(simd_shuffle_rotate_down, (lane + int(n)) & 31)
SMELT_SHUFFLE(quad_shuffle, (lane & ~3) | (int(n) & 3))
SMELT_SHUFFLE(quad_broadcast, (lane & ~3) | (int(n) & 3))
SMELT_SHUFFLE(quad_shuffle_xor, lane ^ (int(n) & 3))
SMELT_SHUFFLE(quad_shuffle_up, (lane & 3) >= int(n) ? lane - int(n) : -1)
SMELT_SHUFFLE(quad_shuffle_down, (lane & 3) + int(n) < 4 ? lane + int(n) : -1)
SMELT_SHUFFLE(quad_shuffle_rotate_up, (lane & ~3) | ((lane - int(n)) & 3))
SMELT_SHUFFLE(quad_shuffle_rotate_down, (lane & ~3) | ((lane + int(n)) & 3))
#undef SMELT_SHUFFLE
template <class T> SMELT_FUNCTION T simd_broadcast_first(T x SMELT_SITE_AFTER) { auto all = smelt::exchange(x SMELT_PASS); return all[smelt::first(all.lanes)]; }
template <class T> SMELT_FUNCTION T quad_broadcast_first(T x SMELT_SITE_AFTER) {
  auto all = smelt::exchange(x SMELT_PASS);
  uint base = smelt::lane() & ~3u;
  return all[base + smelt::first((all.lanes >> base) & 15u)];
}
// `modulo` lanes form a group of their own; what would come from outside comes from `fill` instead.
template <class T> SMELT_FUNCTION T simd_shuffle_and_fill_up(T x, T fill, ushort delta, ushort modulo = 32 SMELT_SITE_AFTER) {
  struct Both { T x, fill; };
  auto all = smelt::exchange(Both{x, fill} SMELT_PASS);
  int lane = int(smelt::lane()), from = (lane & (int(modulo) - 1)) - int(delta);
  Both b = all[uint(from < 0 ? lane - int(delta) + int(modulo) : lane - int(delta)) & 31u];
  return from < 0 ? b.fill : b.x;
}
template <class T> SMELT_FUNCTION T simd_shuffle_and_fill_down(T x, T fill, ushort delta, ushort modulo = 32 SMELT_SITE_AFTER) {
  struct Both { T x, fill; };
  auto all = smelt::exchange(Both{x, fill} SMELT_PASS);
  int lane = int(smelt::lane()), from = (lane & (int(modulo) - 1)) + int(delta);
  Both b = all[uint(from >= int(modulo) ? lane + int(delta) - int(modulo) : lane + int(delta)) & 31u];
  return from >= int(modulo) ? b.fill : b.x;
}

#define SMELT_SCAN(name, start, op) \
  template <class T> SMELT_FUNCTION T simd_prefix_inclusive_##name(T x SMELT_SITE_AFTER) { \
    auto all = smelt::exchange(x SMELT_PASS); \
    uint lane = smelt::lane(); \
    T r = T(start); \
    for (uint i = 0; i < 32u; i++) if (all.lanes >> i & 1u) { T v = all[i]; if (i <= lane) r = T(r op v); } \
    return r; \
  } \
  template <class T> SMELT_FUNCTION T simd_prefix_exclusive_##name(T x SMELT_SITE_AFTER) { \
    auto all = smelt::exchange(x SMELT_PASS); \
    uint lane = smelt::lane(); \
    T r = T(start); \
    for (uint i = 0; i < 32u; i++) if (all.lanes >> i & 1u) { T v = all[i]; if (i < lane) r = T(r op v); } \
    return r; \
  } \
  template <class T> SMELT_FUNCTION T quad_prefix_inclusive_##name(T x SMELT_SITE_AFTER) { \
    auto all = smelt::exchange(x SMELT_PASS); \
    uint lane = smelt::lane(); \
    T r = T(start); \
    for (uint i = 0; i < 4u; i++) { T v = all[(lane & ~3u) + i]; if (i <= (lane & 3u)) r = T(r op v); } \
    return r; \
  } \
  template <class T> SMELT_FUNCTION T quad_prefix_exclusive_##name(T x SMELT_SITE_AFTER) { \
    auto all = smelt::exchange(x SMELT_PASS); \
    uint lane = smelt::lane(); \
    T r = T(start); \
    for (uint i = 0; i < 4u; i++) { T v = all[(lane & ~3u) + i]; if (i < (lane & 3u)) r = T(r op v); } \
    return r; \
  }
SMELT_SCAN(sum, 0, +)
SMELT_SCAN(product, 1, *)
#undef SMELT_SCAN

struct simd_vote {
  typedef ulong vote_t;
  vote_t votes;
  SMELT_FUNCTION explicit constexpr simd_vote(vote_t v = 0) : votes(v) {}
  SMELT_FUNCTION explicit constexpr operator vote_t() const { return votes; }
  SMELT_FUNCTION constexpr bool all() const { return votes == 0xffffffffu; }
  SMELT_FUNCTION constexpr bool any() const { return votes != 0; }
};
SMELT_FUNCTION simd_vote simd_ballot(bool b SMELT_SITE_AFTER) {
#ifdef SMELT_CUDA
  return simd_vote(__ballot_sync(smelt::active(), b));
#else
  auto all = smelt::exchange(uint(b) SMELT_PASS);
  ulong r = 0;
  for (uint i = 0; i < 32u; i++) if ((all.lanes >> i & 1u) && all[i]) r |= 1ul << i;
  return simd_vote(r);
#endif
}
SMELT_FUNCTION simd_vote simd_active_threads_mask(SMELT_SITE) {
#ifdef SMELT_CUDA
  return simd_vote(__activemask());
#else
  return simd_vote(smelt::exchange(site, site).lanes);
#endif
}
SMELT_FUNCTION bool simd_any(bool b SMELT_SITE_AFTER) { return simd_ballot(b SMELT_PASS).votes != 0; }
SMELT_FUNCTION bool simd_all(bool b SMELT_SITE_AFTER) { return simd_ballot(!b SMELT_PASS).votes == 0; }
SMELT_FUNCTION bool simd_is_first(SMELT_SITE) {
#ifdef SMELT_CUDA
  return smelt::first(__activemask()) == smelt::lane();
#else
  return smelt::first(smelt::exchange(site, site).lanes) == smelt::lane();
#endif
}
SMELT_FUNCTION bool simd_is_helper_thread() { return false; }
SMELT_FUNCTION bool quad_any(bool b SMELT_SITE_AFTER) { return (simd_ballot(b SMELT_PASS).votes >> (smelt::lane() & ~3u) & 15u) != 0; }
SMELT_FUNCTION bool quad_all(bool b SMELT_SITE_AFTER) { return (simd_ballot(!b SMELT_PASS).votes >> (smelt::lane() & ~3u) & 15u) == 0; }

}  // namespace metal
