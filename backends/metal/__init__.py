"""The Metal backend: kernels as Metal Shading Language, checked and run on any machine."""

#: What makes a module ready for `compile_module`.
PIPELINE = (
    "fixpoint(inline,batch,jvp,linearize,transpose),canonicalize,cse,dce,"
    "place{dtypes=f64 kinds=opaque},fuse{contractions=true max_buffers=31},plan-buffers"
)
