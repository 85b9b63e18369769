"""Names that programs for NumPy, PyTorch and JAX expect, and what they are here: what an AttributeError says."""

from __future__ import annotations

from smelt.ir.errors import MissingNameError, at_user_line, shown

__all__: list[str] = []


def _same(names: str) -> dict[str, str]:
    """``there=here`` pairs."""
    return {there: f"smelt.{here}" for there, here in (pair.split("=") for pair in names.split())}


NUMPY = {
    **_same(
        "absolute=abs amax=max amin=min bitwise_not=bitwise_invert bool8=bool_ fabs=abs float_power=power product=prod "
        "cumproduct=cumprod alltrue=all sometrue=any asanyarray=asarray ascontiguousarray=contiguous rollaxis=moveaxis "
        "deg2rad=radians rad2deg=degrees copy=array ndarray=array matrix=array in1d=isin "
        "cross=linalg.cross single=float32 double=float64 half=float16 csingle=complex64 intc=int32 int_=int64 "
        "cdouble=complex128 float_=float32 fix=trunc vectorize=vmap apply_along_axis=vmap ushort=uint16 ubyte=uint8 "
        "mod=remainder around=round rint=round invert=bitwise_invert matvec=matmul vecmat=matmul "
        "sort_complex=sort promote_types=result_type array_equiv=array_equal spacing=nextafter msort=sort "
        "expit=sigmoid gammaln=lgamma loggamma=lgamma psi=digamma log_expit=nn.log_sigmoid logdet=linalg.slogdet"
    ),
    "dot": "smelt.matmul(a, b) of matrices, smelt.inner(a, b) of vectors, smelt.tensordot(a, b, axes=1) of others",
    "vdot": "smelt.vecdot(a.flatten(), b.flatten())",
    "shape": "the attribute x.shape", "ndim": "the attribute x.ndim", "size": "the attribute x.size",
    "float": "the dtype smelt.float32", "int": "the dtype smelt.int32", "complex": "the dtype smelt.complex64",
    "object_": "nothing: arrays hold numbers",
    "piecewise": "smelt.where", "select": "smelt.where", "choose": "smelt.where",
    "put": "smelt.put_along_axis, or x[i] = v", "place": "smelt.where(mask, values, x)",
    "copyto": "smelt.where, or x[...] = y", "putmask": "smelt.where(mask, values, x)",
    "r_": "smelt.concatenate",
    "isreal": "smelt.imag(x) == 0", "iscomplex": "smelt.imag(x) != 0", "ix_": "x[:, None], one array an axis",
    "gamma": "smelt.exp(smelt.lgamma(x))", "beta": "smelt.exp(smelt.betaln(a, b))",
    "exp10": "smelt.power(10.0, x)", "expi": "scipy.special.expi", "comb": "scipy.special.comb",
    "factorial": "smelt.exp(smelt.lgamma(n + 1))", "diagflat": "smelt.diag(smelt.ravel(x))",
    "triu_indices_from": "smelt.triu_indices(*x.shape)", "tril_indices_from": "smelt.tril_indices(*x.shape)",
    "diag_indices_from": "smelt.diag_indices(n)", "roots": "smelt.linalg.eigvals of the companion matrix",
    "polyadd": "the sum of coefficients", "polymul": "smelt.convolve(p, q)", "polyder": "smelt.grad of smelt.polyval",
    "trim_zeros": "x[smelt.nonzero(x)[0][0]:]", "packbits": "smelt.array(numpy.packbits(x))",
    "unpackbits": "smelt.array(numpy.unpackbits(x))", "bmat": "smelt.block",
    "c_": "smelt.stack", "s_": "slices in brackets", "mgrid": "smelt.meshgrid",
    "ogrid": "smelt.meshgrid(..., sparse=True)",
    "fromfunction": "smelt.meshgrid of smelt.arange",
    "frombuffer": "smelt.array(numpy.frombuffer(...))", "fromiter": "smelt.array(list(iterator))",
    "fromfile": "smelt.array(numpy.fromfile(...))", "loadtxt": "smelt.array(numpy.loadtxt(...))",
    "genfromtxt": "smelt.array(numpy.genfromtxt(...))", "savetxt": "numpy.savetxt(file, x)",
    "memmap": "smelt.load of a .safetensors file, which is mapped",
    "polyfit": "smelt.linalg.lstsq(smelt.vander(x, n + 1), y)",
    "i0": "numpy.i0", "errstate": "nothing: no operation warns", "seterr": "nothing: no operation warns",
    "iscomplexobj": "smelt.isdtype(x.dtype, 'complex floating')",
    "isrealobj": "not smelt.isdtype(x.dtype, 'complex floating')", "asfarray": "smelt.asarray(x, dtype=smelt.float32)",
    "trapz": "smelt.sum((y[1:] + y[:-1]) * smelt.diff(x)) / 2", "testing": "numpy.testing",
    "row_stack": "smelt.concatenate(arrays, axis=0)",
    "may_share_memory": "nothing: arrays do not change", "shares_memory": "nothing: arrays do not change",
}  # fmt: skip

TORCH = {
    **_same(
        "tensor=array Tensor=array as_tensor=asarray from_numpy=array cat=concatenate clamp=clip "
        "div=divide true_divide=divide mul=multiply sub=subtract neg=negative eq=equal ne=not_equal gt=greater "
        "ge=greater_equal lt=less le=less_equal mm=matmul bmm=matmul mv=matmul baddbmm=addmm permute=transpose "
        "unbind=unstack gather=take_along_axis index_select=take chunk=split rand=random.uniform randn=random.normal "
        "randint=random.randint randperm=random.permutation manual_seed=random.seed relu=nn.relu gelu=nn.gelu "
        "silu=nn.silu log_softmax=nn.log_softmax leaky_relu=nn.leaky_relu softplus=nn.softplus elu=nn.elu "
        "cross_entropy=nn.losses.cross_entropy mse_loss=nn.losses.mse_loss layer_norm=fast.layer_norm "
        "rms_norm=fast.rms_norm embedding=nn.Embedding dropout=nn.Dropout inverse=linalg.inv norm=linalg.norm "
        "svd=linalg.svd qr=linalg.qr cholesky=linalg.cholesky det=linalg.det pinverse=linalg.pinv eig=linalg.eig "
        "lu=linalg.lu stft=fft.stft istft=fft.istft hann_window=hanning hamming_window=hamming "
        "blackman_window=blackman bartlett_window=bartlett long=int64 short=int16 optim=optimizers "
        "logdet=linalg.slogdet matrix_exp=linalg.expm matrix_power=linalg.matrix_power conv1=conv1d conv2=conv2d "
        "conv3=conv3d scaled_dot_product_attention=fast.scaled_dot_product_attention Size=array narrow=slice "
        "bitwise_not=bitwise_invert multinomial=random.categorical bernoulli=random.bernoulli bucketize=searchsorted "
        "detach=stop_gradient clone=array histc=histogram kthvalue=partition movedim=moveaxis swapdims=swapaxes "
        "repeat_interleave=repeat sgn=sign tensor_split=array_split igamma=gammainc igammac=gammaincc "
        "mvlgamma=multigammaln unsqueeze=expand_dims block_diag=linalg.block_diag chain_matmul=linalg.multi_dot "
        "cholesky_inverse=linalg.cholesky_inv cholesky_solve=linalg.cho_solve slogdet=linalg.slogdet "
        "solve=linalg.solve triangular_solve=linalg.solve_triangular lstsq=linalg.lstsq lu_solve=linalg.lu_solve "
        "matrix_rank=linalg.matrix_rank normal=random.normal poisson=random.poisson binomial=random.binomial "
        "group_norm=nn.GroupNorm batch_norm=nn.BatchNorm instance_norm=nn.InstanceNorm max_pool1d=nn.MaxPool1d "
        "max_pool2d=nn.MaxPool2d avg_pool1d=nn.AvgPool1d gru=nn.GRU lstm=nn.LSTM selu=nn.selu celu=nn.celu "
        "prelu=nn.prelu unique_consecutive=unique take_along_dim=take_along_axis "
        "pca_lowrank=linalg.svd nuclear_norm=linalg.norm frobenius_norm=linalg.norm"
    ),
    "lerp": "a + weight * (b - a)", "frac": "smelt.modf(x)[0]", "polar": "r * smelt.exp(1j * angle)",
    "addcmul": "a + value * x * y", "addcdiv": "a + value * x / y",
    "cdist": "smelt.linalg.norm(a[:, None] - b, axis=-1)",
    "rand_like": "smelt.random.uniform(shape=x.shape)", "randn_like": "smelt.random.normal(x.shape)",
    "scatter_reduce": "x.at[indices].add, .multiply, .maximum or .minimum", "rsub": "smelt.subtract(b, a)",
    "index_fill": "x.at[indices].set(value)", "aminmax": "smelt.min and smelt.max", "range": "smelt.arange",
    "cartesian_prod": "smelt.meshgrid", "nonzero_static": "smelt.nonzero(x, size=n)",
    "mode": "smelt.unique with counts",
    "masked_fill": "smelt.where(mask, value, x)", "masked_select": "x[mask]",
    "scatter": "smelt.put_along_axis(x, indices, values, axis)", "scatter_add": "x.at[indices].add(values)",
    "index_add": "x.at[indices].add(values)", "index_copy": "x[indices] = values", "index_put": "x[indices] = values",
    "no_grad": "nothing: derivatives are taken by smelt.grad alone; smelt.stop_gradient holds a value fixed",
    "inference_mode": "nothing: derivatives are taken by smelt.grad alone", "autograd": "smelt.grad",
    "enable_grad": "nothing: derivatives are taken by smelt.grad", "numel": "the attribute x.size",
    "is_tensor": "isinstance(x, smelt.array)", "t": "x.T", "device": "smelt.Device",
    "dtype": "smelt.Dtype", "set_default_dtype": "dtype= in the functions that make arrays",
    "set_grad_enabled": "smelt.stop_gradient", "dist": "smelt.linalg.norm(a - b)",
    "std_mean": "smelt.std and smelt.mean",
    "var_mean": "smelt.var and smelt.mean", "view_as_complex": "smelt.view(x, smelt.complex64)",
    "view_as_real": "smelt.view(x, smelt.float32)", "amp": "x.astype(smelt.bfloat16)",
    "svd_lowrank": "smelt.linalg.svd",
    "unfold": "smelt.as_strided", "is_floating_point": "smelt.issubdtype(x.dtype, smelt.floating)",
}  # fmt: skip

JAX = {
    **_same(
        "jit=compile pjit=compile remat=checkpoint make_jaxpr=make_ir Array=array ShapeDtypeStruct=ShapeDtype "
        "block_until_ready=eval tree_map=utils.tree_map tree_flatten=utils.tree_flatten tree_leaves=utils.tree_flatten "
        "tree_unflatten=utils.tree_unflatten tree_util=utils tree=utils dynamic_slice=slice PRNGKey=random.key "
        "dynamic_update_slice=slice_update device_get=eval export=export_function pure_callback=custom_call "

    ),
    "numpy": "smelt itself: import smelt as jnp", "lax": "smelt itself: smelt.scan, smelt.cond, smelt.while_loop, …",
    "device_put": "smelt.array(x), and with smelt.stream(device): where it is computed",
    "pmap": "smelt.vmap", "xmap": "smelt.vmap", "eval_shape": "smelt.compile(f).trace(smelt.ShapeDtype(...))",
    "config": "the settings of docs/settings.md", "debug": "smelt.explain()",
}  # fmt: skip

_LIBRARIES = {"NumPy": NUMPY, "PyTorch": TORCH, "JAX": JAX}


def missing(name: str, known: list[str]) -> MissingNameError:
    """The error about a name that smelt does not have; `known` are those that it has."""
    for library, names in _LIBRARIES.items():
        if name in names:
            return MissingNameError(at_user_line(f"smelt has no {name!r}; what {library} calls so is {names[name]}"))
    import difflib  # nobody needs it otherwise

    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean smelt.{near[0]}?" if near else ""
    return MissingNameError(at_user_line(f"smelt has no {shown(name)}{hint}"))
