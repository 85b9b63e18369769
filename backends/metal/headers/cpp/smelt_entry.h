// How the code around a kernel passes its arguments, whatever their types are.
#pragma once

namespace smelt {

/// A position or size: converts to one, two or three components of uint or ushort.
struct Position {
  uint x, y, z;
  SMELT_FUNCTION operator uint() const { return x; }
  SMELT_FUNCTION operator ushort() const { return ushort(x); }
  SMELT_FUNCTION operator uint2() const { return uint2(x, y); }
  SMELT_FUNCTION operator uint3() const { return uint3(x, y, z); }
  SMELT_FUNCTION operator ushort2() const { return ushort2(x, y); }
  SMELT_FUNCTION operator ushort3() const { return ushort3(x, y, z); }
};

/// A buffer for a parameter that is a pointer.
struct Pointer {
  void* address;
  template <class T> SMELT_FUNCTION operator T*() const { return static_cast<T*>(address); }
};

/// A buffer for a parameter that is a reference.
struct Reference {
  void* address;
  template <class T> SMELT_FUNCTION operator T&() const { return *static_cast<T*>(address); }
};

}  // namespace smelt
