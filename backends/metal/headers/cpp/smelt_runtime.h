// What a compiled kernel library and the simulator's runtime share.
#pragma once

namespace smelt {

enum { BUFFERS = 31, LANES = 32, OPERAND_BYTES = 64, OPERATIONS = 4096 };

/// Where a thread stands. One per thread of the running threadgroup.
struct Context {
  unsigned position_in_grid[3];
  unsigned position_in_threadgroup[3];
  unsigned threadgroup_position[3];
  unsigned threadgroups[3];
  unsigned grid[3];
  unsigned threads[3];       // of this threadgroup: fewer in ragged ones
  unsigned full_threads[3];  // of a whole threadgroup
  unsigned index, lane, simdgroup, simdgroups;
  void* const* buffers;
};

/// What kernels ask of the runtime.
struct Runtime {
  /// Waits for the threadgroup at the barrier of source line `line`.
  void (*threadgroup_barrier)(unsigned line);
  /// Waits for the active lanes at `site`: a line of the text and an operation in it. Returns their operands, `size` bytes a lane, and which lanes they
  /// are. `whole` demands all 32 (1) or all that the simdgroup has (2).
  const void* (*exchange)(const void* operand, unsigned size, unsigned site, unsigned whole, unsigned* lanes);
  /// The lane of the running thread.
  unsigned (*lane)();
  /// Memory of the threadgroup's variable `id`: the same for all of its threads.
  void* (*threadgroup_variable)(unsigned id, unsigned long size);
  /// Memory bound to [[threadgroup(index)]].
  void* (*threadgroup_argument)(unsigned index);
};

}  // namespace smelt
