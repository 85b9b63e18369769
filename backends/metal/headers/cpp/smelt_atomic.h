// Atomics. Order is always relaxed or stronger.
#pragma once

namespace smelt {
#ifdef SMELT_CUDA
// One word as CUDA's atomics want it.
template <class T, int Bytes = sizeof(T)> struct Word { typedef uint type; };
template <class T> struct Word<T, 8> { typedef unsigned long long type; };
template <class T> SMELT_FUNCTION bool swap_if(T* p, T& expected, T desired) {
  typedef typename Word<T>::type W;
  W before = bits<W>(expected), found = atomicCAS(reinterpret_cast<W*>(p), before, bits<W>(desired));
  expected = bits<T>(found);
  return found == before;
}
template <class T> SMELT_FUNCTION T load(const T* p) { return *const_cast<const volatile T*>(p); }
template <class T> SMELT_FUNCTION void store(T* p, T x) { *const_cast<volatile T*>(p) = x; }
#else
template <class T> SMELT_FUNCTION bool swap_if(T* p, T& expected, T desired) { return __atomic_compare_exchange(p, &expected, &desired, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED); }
template <class T> SMELT_FUNCTION T load(const T* p) { T x; __atomic_load(const_cast<T*>(p), &x, __ATOMIC_RELAXED); return x; }
template <class T> SMELT_FUNCTION void store(T* p, T x) { __atomic_store(p, &x, __ATOMIC_RELAXED); }
#endif
}  // namespace smelt

namespace metal {

template <class T> struct atomic { T value; };
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<ulong> atomic_ulong;
typedef atomic<float> atomic_float;
typedef atomic<bool> atomic_bool;

template <class T> SMELT_FUNCTION T atomic_load_explicit(const atomic<T>* p, memory_order) { return smelt::load(&p->value); }
template <class T> SMELT_FUNCTION T atomic_load_explicit(const volatile atomic<T>* p, memory_order) { return smelt::load(const_cast<const T*>(&p->value)); }
template <class T> SMELT_FUNCTION void atomic_store_explicit(atomic<T>* p, typename type_identity<T>::type x, memory_order) { smelt::store(&p->value, x); }
template <class T> SMELT_FUNCTION void atomic_store_explicit(volatile atomic<T>* p, typename type_identity<T>::type x, memory_order) { smelt::store(const_cast<T*>(&p->value), x); }
template <class T> SMELT_FUNCTION bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* p, T* expected, typename type_identity<T>::type desired, memory_order, memory_order) {
  return smelt::swap_if(const_cast<T*>(&p->value), *expected, desired);
}
#define SMELT_ATOMIC(name, expression) \
  template <class T> SMELT_FUNCTION T name(volatile atomic<T>* p, typename type_identity<T>::type b, memory_order) { \
    T* at = const_cast<T*>(&p->value); \
    T a = smelt::load(at); \
    while (!smelt::swap_if(at, a, T(expression))) {} \
    return a; \
  }
SMELT_ATOMIC(atomic_exchange_explicit, b)
SMELT_ATOMIC(atomic_fetch_sub_explicit, a - b)
SMELT_ATOMIC(atomic_fetch_and_explicit, a & b)
SMELT_ATOMIC(atomic_fetch_or_explicit, a | b)
SMELT_ATOMIC(atomic_fetch_xor_explicit, a ^ b)
#ifdef SMELT_CUDA
// Of integers of 32 bits by an instruction, of others by exchanges.
#define SMELT_EXTREME(name, function, expression) \
  template <class T> SMELT_FUNCTION T name(volatile atomic<T>* p, typename type_identity<T>::type b, memory_order) { \
    T* at = const_cast<T*>(&p->value); \
    if constexpr (is_same<T, int>::value || is_same<T, uint>::value) return function(at, b); \
    else { \
      T a = smelt::load(at); \
      while (!smelt::swap_if(at, a, T(expression))) {} \
      return a; \
    } \
  }
SMELT_EXTREME(atomic_fetch_max_explicit, atomicMax, metal::max(a, b))
SMELT_EXTREME(atomic_fetch_min_explicit, atomicMin, metal::min(a, b))
#undef SMELT_EXTREME
#else
SMELT_ATOMIC(atomic_fetch_max_explicit, metal::max(a, b))
SMELT_ATOMIC(atomic_fetch_min_explicit, metal::min(a, b))
#endif
#ifdef SMELT_CUDA
template <class T> SMELT_FUNCTION T atomic_fetch_add_explicit(volatile atomic<T>* p, typename type_identity<T>::type b, memory_order) {
  T* at = const_cast<T*>(&p->value);
  if constexpr (sizeof(T) == 8) return T(atomicAdd(reinterpret_cast<unsigned long long*>(at), (unsigned long long)(b)));
  else return atomicAdd(at, b);
}
#else
SMELT_ATOMIC(atomic_fetch_add_explicit, a + b)
#endif
#undef SMELT_ATOMIC
template <class T> SMELT_FUNCTION void atomic_max_explicit(volatile atomic<T>* p, typename type_identity<T>::type x, memory_order o) { (void)atomic_fetch_max_explicit(p, x, o); }
template <class T> SMELT_FUNCTION void atomic_min_explicit(volatile atomic<T>* p, typename type_identity<T>::type x, memory_order o) { (void)atomic_fetch_min_explicit(p, x, o); }
SMELT_FUNCTION void atomic_thread_fence(mem_flags, memory_order, thread_scope = thread_scope_device) {
#ifdef SMELT_CUDA
  __threadfence();
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

}  // namespace metal
