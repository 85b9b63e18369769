"""Names that programs for NumPy, PyTorch and JAX expect, and what they are here: what an AttributeError says."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.ir import locks
from smelt.ir.errors import MissingNameError, at_user_line, did_you_mean, shown

from .errors import __all__ as ERRORS

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
        "LinAlgError=errors.LibraryError exceptions=errors sort_complex=sort promote_types=result_type "
        "array_equiv=array_equal spacing=nextafter msort=sort "
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
    "exp10": "smelt.power(10.0, x)", "comb": "scipy.special.comb",
    "diagflat": "smelt.diag(smelt.ravel(x))",
    "triu_indices_from": "smelt.triu_indices(*x.shape)", "tril_indices_from": "smelt.tril_indices(*x.shape)",
    "diag_indices_from": "smelt.diag_indices(n)", "polyadd": "the sum of coefficients",
    "trim_zeros": "x[smelt.nonzero(x)[0][0]:]", "packbits": "smelt.array(numpy.packbits(x))",
    "unpackbits": "smelt.array(numpy.unpackbits(x))", "bmat": "smelt.block",
    "c_": "smelt.column_stack", "s_": "slices in brackets", "mgrid": "smelt.meshgrid",
    "ogrid": "smelt.meshgrid(..., sparse=True)",
    "fromfunction": "smelt.meshgrid of smelt.arange",
    "frombuffer": "smelt.array(numpy.frombuffer(...))", "fromiter": "smelt.array(list(iterator))",
    "fromfile": "smelt.array(numpy.fromfile(...))", "loadtxt": "smelt.array(numpy.loadtxt(...))",
    "genfromtxt": "smelt.array(numpy.genfromtxt(...))", "savetxt": "numpy.savetxt(file, x)",
    "memmap": "smelt.load of a .safetensors file, which is mapped",
    "errstate": "nothing: no operation warns", "seterr": "nothing: no operation warns",
    "iscomplexobj": "smelt.isdtype(x.dtype, 'complex floating')",
    "isrealobj": "not smelt.isdtype(x.dtype, 'complex floating')", "asfarray": "smelt.asarray(x, dtype=smelt.float32)",
    "trapz": "smelt.sum((y[1:] + y[:-1]) * smelt.diff(x)) / 2", "testing": "numpy.testing",
    "row_stack": "smelt.concatenate(arrays, axis=0)",
    "polysub": "the difference of coefficients", "polydiv": "numpy.polydiv, of lists", "poly1d": "smelt.polyval(p, x)",
    "isscalar": "isinstance(x, (int, float, complex)) or x.ndim == 0", "iterable": "x.ndim > 0",
    "kaiser": "smelt.i0(b * smelt.sqrt(1 - smelt.linspace(-1, 1, n) ** 2)) / smelt.i0(b)",
    "apply_over_axes": "the reduction's axis=", "frompyfunc": "smelt.vmap, or smelt.custom_call of a function on NumPy",
    "array2string": "str(x)", "array_str": "str(x)", "array_repr": "repr(x)", "fromstring": "smelt.array(list)",
    "mask_indices": "smelt.nonzero(mask)", "isfortran": "nothing: the order in memory is no part of an array",
    "asfortranarray": "smelt.contiguous", "asmatrix": "smelt.array", "min_scalar_type": "smelt.result_type",
    "common_type": "smelt.result_type", "real_if_close": "smelt.real(x)",
    "asarray_chkfinite": "smelt.isfinite(x).all()",
    "show_config": "smelt.device_info()", "require": "smelt.contiguous",
    "may_share_memory": "nothing: arrays do not change", "shares_memory": "nothing: arrays do not change",
}  # fmt: skip

TORCH = {
    **_same(
        "tensor=array Tensor=array as_tensor=asarray from_numpy=array cat=concatenate clamp=clip "
        "div=divide true_divide=divide mul=multiply sub=subtract neg=negative eq=equal ne=not_equal gt=greater "
        "ge=greater_equal lt=less le=less_equal mm=matmul bmm=matmul mv=matmul baddbmm=addmm permute=transpose "
        "unbind=unstack gather=take_along_axis index_select=take chunk=split rand=random.uniform randn=random.normal "
        "randint=random.randint randperm=random.permutation manual_seed=random.seed relu=nn.relu gelu=nn.gelu "
        "set_flush_denormal=set_flush_subnormals "
        "silu=nn.silu log_softmax=nn.log_softmax leaky_relu=nn.leaky_relu softplus=nn.softplus elu=nn.elu "
        "cross_entropy=nn.losses.cross_entropy mse_loss=nn.losses.mse_loss layer_norm=fast.layer_norm "
        "rms_norm=fast.rms_norm embedding=nn.Embedding dropout=nn.Dropout inverse=linalg.inv norm=linalg.norm "
        "svd=linalg.svd qr=linalg.qr cholesky=linalg.cholesky det=linalg.det pinverse=linalg.pinv eig=linalg.eig "
        "lu=linalg.lu Variable=array stft=fft.stft istft=fft.istft hann_window=hanning hamming_window=hamming "
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
    **_same(
        "bessel_j0=j0 bessel_j1=j1 bessel_y0=y0 bessel_y1=y1 modified_bessel_i0=i0 modified_bessel_i1=i1 "
        "modified_bessel_k0=k0 modified_bessel_k1=k1 scaled_modified_bessel_k0=k0e scaled_modified_bessel_k1=k1e "
        "clamp_max=minimum clamp_min=maximum ger=outer broadcast_tensors=broadcast_arrays "
        "hardtanh=nn.hard_tanh hardshrink=nn.hard_shrink logsigmoid=nn.log_sigmoid embedding_bag=nn.EmbeddingBag "
        "max_pool3d=nn.MaxPool3d avg_pool3d=nn.AvgPool3d adaptive_avg_pool2d=nn.AdaptiveAvgPool2d "
        "adaptive_max_pool2d=nn.AdaptiveMaxPool2d interpolate=nn.Upsample upsample=nn.Upsample bilinear=nn.Bilinear "
        "gru_cell=nn.GRUCell lstm_cell=nn.LSTMCell "
        "binary_cross_entropy_with_logits=nn.losses.binary_cross_entropy alpha_dropout=nn.Dropout linear=nn.Linear "
        "get_default_device=default_device triplet_margin_loss=nn.losses.triplet_loss swish=nn.silu "
        "hard_swish=nn.hardswish soft_sign=nn.softsign"
    ),
    "adjoint": "smelt.conj(smelt.matrix_transpose(x))",
    "addmv": "smelt.addmm", "addr": "c + smelt.outer(a, b)", "addbmm": "c + (a @ b).sum(0)",
    "diag_embed": "x[..., None] * smelt.eye(x.shape[-1])", "one_hot": "labels[..., None] == smelt.arange(n)",
    "index_reduce": "x.at[indices].multiply, .maximum or .minimum",
    "cosine_similarity": "(a * b).sum(-1) / (smelt.linalg.norm(a, axis=-1) * smelt.linalg.norm(b, axis=-1))",
    "is_complex": "smelt.isdtype(x.dtype, 'complex floating')",
    "is_nonzero": "bool(x)", "is_signed": "smelt.issubdtype(x.dtype, smelt.signedinteger)",
    "masked_scatter": "x[mask] = values", "fill": "smelt.full_like(x, value)", "is_same_size": "a.shape == b.shape",
    "combinations": "itertools.combinations of indices", "pairwise_distance": "smelt.linalg.norm(a - b, axis=-1)",
    "pixel_shuffle": "smelt.reshape and smelt.transpose", "channel_shuffle": "smelt.reshape and smelt.swapaxes",
    "normalize": "x / smelt.linalg.norm(x, axis=-1, keepdims=True)", "tanhshrink": "x - smelt.tanh(x)",
    "gumbel_softmax": "smelt.softmax((logits + smelt.random.gumbel(logits.shape)) / t)",
    "hardsigmoid": "smelt.clip(x / 6 + 0.5, 0, 1)", "squareplus": "(x + smelt.sqrt(x * x + b)) / 2",
    "threshold": "smelt.where(x > t, x, value)", "get_default_dtype": "smelt.float32",
    "get_rng_state": "smelt.random.state", "constant_pad_nd": "smelt.pad",
    "as_strided_copy": "smelt.as_strided", "fold": "x.at[indices].add(values)", "lu_unpack": "smelt.linalg.lu",
    "unfold": "smelt.as_strided", "is_floating_point": "smelt.issubdtype(x.dtype, smelt.floating)",
}  # fmt: skip

_FACTORIAL, _EIGEN = "smelt.exp(smelt.lgamma(n + 1))", "smelt.linalg.eigh(a)"
SCIPY = {
    **_same(
        "pseudo_huber_loss=nn.losses.huber_loss huber_loss=nn.losses.huber_loss"
    ),
    **dict.fromkeys(("jv", "jn", "jve"), "smelt.j0 and smelt.j1, of orders 0 and 1"),
    **dict.fromkeys(("yv", "yn", "yve"), "smelt.y0 and smelt.y1, of orders 0 and 1"),
    **dict.fromkeys(("iv", "ive"), "smelt.i0, smelt.i1, smelt.i0e and smelt.i1e, of orders 0 and 1"),
    **dict.fromkeys(("kv", "kn", "kve"), "smelt.k0, smelt.k1, smelt.k0e and smelt.k1e, of orders 0 and 1"),
    "pdist": "smelt.linalg.norm(x[i] - x[j], axis=-1) with i, j = smelt.triu_indices(n, 1)",
    "factorial2": _FACTORIAL, "binom": "smelt.exp(-smelt.betaln(n - k + 1, k + 1)) / (n + 1)",
    "perm": "smelt.exp(smelt.lgamma(n + 1) - smelt.lgamma(n - k + 1))",
    "poch": "smelt.gamma(x + n) / smelt.gamma(x)", "rgamma": "1 / smelt.gamma(x)",
    "gammaincinv": "scipy.special.gammaincinv",
    "betaincinv": "scipy.special.betaincinv", "betaincc": "smelt.betainc(b, a, 1 - x)",
    "exprel": "smelt.expm1(x) / x", "cosm1": "-2 * smelt.sin(x / 2) ** 2", "powm1": "smelt.expm1(y * smelt.log(x))",
    "boxcox": "smelt.expm1(lmbda * smelt.log(x)) / lmbda", "boxcox1p": "smelt.expm1(lmbda * smelt.log1p(x)) / lmbda",
    "inv_boxcox": "smelt.exp(smelt.log1p(lmbda * y) / lmbda)", "huber": "smelt.nn.losses.huber_loss",
    "pseudo_huber": "delta ** 2 * (smelt.sqrt(1 + (r / delta) ** 2) - 1)", "zetac": "smelt.zeta(x, 2)",
    "shichi": "scipy.special.shichi", "dawsn": "scipy.special.dawsn",
    "erfi": "scipy.special.erfi", "lambertw": "scipy.special.lambertw",
    "wofz": "scipy.special.wofz", "owens_t": "scipy.special.owens_t",
    "hyp1f1": "scipy.special.hyp1f1", "hyp2f1": "scipy.special.hyp2f1",
    "airy": "scipy.special.airy", "sph_harm_y": "scipy.special.sph_harm_y",
    "pdtr": "smelt.gammaincc(k + 1, m)", "chdtr": "smelt.gammainc(v / 2, x / 2)",
    "bdtr": "smelt.betainc(n - k, k + 1, 1 - p)", "stdtr": "scipy.special.stdtr", "gdtr": "smelt.gammainc(b, a * x)",
    "eval_legendre": "scipy.special.eval_legendre", "eval_chebyt": "smelt.cos(n * smelt.arccos(x))",
    "spherical_jn": "scipy.special.spherical_jn", "agm": "scipy.special.agm",
}  # fmt: skip

#: Of `smelt.linalg`.
LINALG = {
    "signm": "smelt.linalg.solve(smelt.linalg.sqrtm(a @ a), a)", "tanm": "smelt.linalg.solve(cosm(a), sinm(a))",
    "tanhm": "smelt.linalg.solve(coshm(a), sinhm(a))", "solve_lyapunov": "smelt.linalg.solve_continuous_lyapunov",
    "schur": "scipy.linalg.schur; of a symmetric matrix smelt.linalg.eigh", "hessenberg": "scipy.linalg.hessenberg",
    "polar": "u, s, vt = smelt.linalg.svd(a), u @ vt", "orth": "smelt.linalg.qr(a)[0], of full rank",
    "null_space": "smelt.linalg.svd(a), rows of vt behind the rank", "pinvh": "smelt.linalg.pinv",
    "circulant": "c[(smelt.arange(n)[:, None] - smelt.arange(n)) % n]",
    "hadamard": "smelt.hadamard_transform(smelt.eye(n))",
    "hilbert": "1 / (smelt.arange(n)[:, None] + smelt.arange(n) + 1)",
    "solve_toeplitz": "smelt.linalg.solve(smelt.linalg.toeplitz(c), b)",
    "solve_circulant": "smelt.fft.ifft(smelt.fft.fft(b) / smelt.fft.fft(c))",
    "solve_banded": "smelt.linalg.solve of the whole matrix",
    "ldl": "smelt.linalg.cholesky of a positive definite matrix, smelt.linalg.lu of others",
    "khatri_rao": "(a[:, None] * b).reshape(-1, n)", "kron": "smelt.kron", "inner": "smelt.inner",
    "einsum": "smelt.einsum",
    "subspace_angles": "smelt.arccos(smelt.linalg.svdvals(q1.T @ q2))", "dft": "smelt.fft.fft(smelt.eye(n))",
    "inv_ex": "smelt.linalg.inv", "cholesky_ex": "smelt.linalg.cholesky", "solve_ex": "smelt.linalg.solve",
    "lu_factor_ex": "smelt.linalg.lu_factor", "matrix_exp": "smelt.linalg.expm", "vander": "smelt.vander",
    "vecnorm": "smelt.linalg.vector_norm", "cdist": "smelt.linalg.norm",
}  # fmt: skip

JAX = {
    **_same(
        "jit=compile pjit=compile remat=checkpoint make_jaxpr=make_ir Array=array ShapeDtypeStruct=ShapeDtype "
        "block_until_ready=eval tree_map=utils.tree_map tree_flatten=utils.tree_flatten tree_leaves=utils.tree_flatten "
        "tree_unflatten=utils.tree_unflatten tree_util=utils tree=utils dynamic_slice=slice PRNGKey=random.key "
        "dynamic_update_slice=slice_update device_get=eval export=export_function pure_callback=custom_call "
        "jacobian=jacrev top_k=topk rem=fmod rev=flip reduce_sum=sum reduce_max=max reduce_min=min "
        "reduce_prod=prod population_count=bitwise_count bitcast_convert_type=view convert_element_type=astype "
        "broadcast_in_dim=broadcast_to cumlogsumexp=logcumsumexp "
        "dot_product_attention=fast.scaled_dot_product_attention is_finite=isfinite integer_pow=power "
        "dot_general=tensordot conv_general_dilated=conv_general erf_inv=erfinv shift_left=left_shift "
        "shift_right_arithmetic=right_shift hard_silu=nn.hardswish optimization_barrier=depends"
    ),
    "numpy": "smelt itself: import smelt as jnp", "lax": "smelt itself: smelt.scan, smelt.cond, smelt.while_loop, …",
    "device_put": "smelt.array(x), and with smelt.stream(device): where it is computed",
    "select_n": "smelt.where(which, b, a)", "iota": "smelt.arange(n)", "broadcasted_iota": "smelt.indices(shape)[axis]",
    "collapse": "smelt.flatten(x, i, j)",
    "reduce_window": "smelt.nn.MaxPool2d and others", "custom_root": "smelt.custom_vjp around smelt.while_loop",
    "log1mexp": "smelt.where(x < 0.7, smelt.log(-smelt.expm1(-x)), smelt.log1p(-smelt.exp(-x)))",
    "logmeanexp": "smelt.logsumexp(x) - math.log(x.size)", "hard_sigmoid": "smelt.clip(x / 6 + 0.5, 0, 1)",
    "standardize": "(x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)",
    "sort_key_val": "i = smelt.argsort(keys); keys[i], values[i]",
    "pmap": "smelt.vmap", "xmap": "smelt.vmap", "eval_shape": "smelt.compile(f).trace(smelt.ShapeDtype(...))",
    "config": "the settings of docs/settings.md", "debug": "smelt.explain()",
}  # fmt: skip

_LAYERS = (
    "BatchNorm1d=BatchNorm BatchNorm2d=BatchNorm BatchNorm3d=BatchNorm SyncBatchNorm=BatchNorm "
    "InstanceNorm1d=InstanceNorm InstanceNorm2d=InstanceNorm InstanceNorm3d=InstanceNorm LazyLinear=Linear "
    "MultiheadAttention=MultiHeadAttention AlphaDropout=Dropout Dropout1d=Dropout Hardtanh=HardTanh "
    "Hardshrink=HardShrink Softmax2d=Softmax UpsamplingBilinear2d=Upsample "
    "UpsamplingNearest2d=Upsample RNNBase=RNN BCELoss=losses.binary_cross_entropy "
    "BCEWithLogitsLoss=losses.binary_cross_entropy CTCLoss=losses.ctc_loss "
    "CosineEmbeddingLoss=losses.cosine_similarity_loss CrossEntropyLoss=losses.cross_entropy "
    "GaussianNLLLoss=losses.gaussian_nll_loss HingeEmbeddingLoss=losses.hinge_loss HuberLoss=losses.huber_loss "
    "KLDivLoss=losses.kl_div_loss L1Loss=losses.l1_loss MSELoss=losses.mse_loss NLLLoss=losses.nll_loss "
    "MarginRankingLoss=losses.margin_ranking_loss SmoothL1Loss=losses.smooth_l1_loss "
    "TripletMarginLoss=losses.triplet_loss DataParallel=average_gradients"
)
_A_LIST, _A_DICT, _PAD = "a list of modules", "a dict of modules", "smelt.pad(x, widths, mode)"
#: Of `smelt.nn`.
NN = {
    **{there: f"smelt.nn.{here}" for there, here in (pair.split("=") for pair in _LAYERS.split())},
    "functional": "smelt.nn itself, smelt.nn.losses, and smelt for what is no layer",
    "Parameter": "a smelt.array that is an attribute of a module; module.freeze(keys=[name]) holds it fixed",
    "Buffer": "a smelt.array that is an attribute of a module, after module.freeze(keys=[name])",
    "ModuleList": _A_LIST, "ParameterList": "a list of arrays", "ModuleDict": _A_DICT,
    "ParameterDict": "a dict of arrays", "parallel": "smelt.nn.average_gradients",
    "Unflatten": "smelt.unflatten(x, axis, shape)", "PixelShuffle": "smelt.reshape and smelt.transpose",
    "CosineSimilarity": "1 - smelt.nn.losses.cosine_similarity_loss(a, b)", "Tanhshrink": "x - smelt.tanh(x)",
    "Hardsigmoid": "smelt.clip(x / 6 + 0.5, 0, 1)", "Unfold": "smelt.as_strided", "Fold": "x.at[indices].add(values)",
    **dict.fromkeys([f"{kind}Pad{n}d" for kind in ("Constant", "Reflection", "Replication", "Zero", "Circular")
                     for n in (1, 2, 3)], _PAD),
}  # fmt: skip

_INITIAL = (
    "xavier_uniform=glorot_uniform xavier_normal=glorot_normal kaiming_uniform=he_uniform kaiming_normal=he_normal"
)
#: Of `smelt.nn.init`, whose functions make functions of an array.
INIT = {
    f"{there}{end}": f"smelt.nn.init.{here}()(x), which returns the values"
    for there, here in (
        *(pair.split("=") for pair in _INITIAL.split()),
        *((name, name) for name in ("uniform", "normal", "constant", "orthogonal", "sparse")),
        ("zeros", "constant"), ("ones", "constant"), ("eye", "identity"),
    )
    for end in ("_", "") if end or there != here
}  # fmt: skip

#: Of a module.
MODULE = {
    "state_dict": "dict(smelt.utils.tree_flatten(model.parameters())), or model.save_weights(file)",
    "load_state_dict": "model.load_weights(list(weights.items())), or of a file",
    "named_parameters": "smelt.utils.tree_flatten(model.parameters())", "forward": "__call__",
    "to": "model.set_dtype(dtype); what is computed under `with smelt.stream(device):` is on that device",
    **dict.fromkeys(
        ("cpu", "cuda"), "nothing: what is computed under `with smelt.stream(device):` is on that device"
    ),
    "half": "model.set_dtype(smelt.float16)", "bfloat16": "model.set_dtype(smelt.bfloat16)",
    "float": "model.set_dtype(smelt.float32)", "double": "model.set_dtype(smelt.float64)",
    "zero_grad": "nothing: smelt.nn.value_and_grad(model, loss) returns the gradients",
    "requires_grad_": "model.freeze() and model.unfreeze()", "add_module": "an attribute: model.name = layer",
    "register_buffer": "an attribute, after model.freeze(keys=[name])",
    "register_module": "an attribute: model.name = layer",
    "register_parameter": "an attribute: model.name = array", "buffers": "model.parameters()",
    "named_children": "model.children()", "append": "a list as attribute: model.layers = [...]",
    "register_forward_hook": "a function of yours around the layer",
}  # fmt: skip

#: Of `smelt.random`.
RANDOM = {
    "NumPy": {
        "rand": "smelt.random.uniform(shape=shape)", "randn": "smelt.random.normal(shape)",
        "random": "smelt.random.uniform(shape=shape)", "standard_normal": "smelt.random.normal(shape)",
        "random_sample": "smelt.random.uniform(shape=shape)", "integers": "smelt.random.randint(low, high, shape)",
        "default_rng": "smelt.random.key(seed), for key= of the functions; smelt.random.split makes more",
        "RandomState": "smelt.random.key(seed), for key= of the functions", "Generator": "smelt.random.key(seed)",
        "standard_t": "smelt.random.student_t", "get_state": "smelt.random.state", "set_state": "smelt.random.seed(n)",
    },
    "JAX": {
        "PRNGKey": "smelt.random.key(seed)",
        "fold_in": "smelt.random.split(key, n)[i]", "t": "smelt.random.student_t", "wrap_key_data": "the key itself",
        "key_data": "the key itself",
    },
}  # fmt: skip

#: Of `smelt.optimizers`.
OPTIMIZERS = {
    "lr_scheduler": "smelt.optimizers.schedulers", "StepLR": "smelt.optimizers.step_decay",
    "ExponentialLR": "smelt.optimizers.exponential_decay", "CosineAnnealingLR": "smelt.optimizers.cosine_decay",
    "LinearLR": "smelt.optimizers.linear_schedule", "SequentialLR": "smelt.optimizers.join_schedules",
    "Adadelta": "smelt.optimizers.AdaDelta", "Nadam": "smelt.optimizers.NAdam", "clip_grad_norm_":
    "smelt.optimizers.clip_grad_norm(gradients, largest), which returns them",
}  # fmt: skip

#: Of an optimizer.
OPTIMIZER = {
    "zero_grad": "nothing: smelt.nn.value_and_grad(model, loss) returns the gradients",
    "param_groups": "optimizer.learning_rate, which may be set, and smelt.optimizers.MultiOptimizer",
    "state_dict": "dict(smelt.utils.tree_flatten(optimizer.state))",
    "load_state_dict": "optimizer.state = smelt.utils.tree_unflatten(list(state.items()))",
    "lr": "optimizer.learning_rate", "add_param_group": "smelt.optimizers.MultiOptimizer",
    "minimize": "optimizer.update(model, gradients)", "defaults": "optimizer.state",
}  # fmt: skip

#: Of a compiled function and of the stages that follow.
STAGES = {
    "jaxpr": "smelt.compile(f).trace(*args).as_text(short=True)", "eval_shape": "smelt.compile(f).trace(*args)",
    **dict.fromkeys(("cost_analysis", "memory_analysis"), "smelt.compile(f).trace(*args).lower().compile().cost()"),
    "compiler_ir": "smelt.compile(f).trace(*args).as_text(stage)",
    "clear_cache": "nothing: the least recently used programs go first",
}  # fmt: skip

#: By what is asked for a name, and by library.
_LIBRARIES: dict[str, dict[str, dict[str, str]]] = {
    "smelt": {"NumPy": NUMPY, "PyTorch": TORCH, "JAX": JAX, "SciPy": SCIPY},
    "smelt.linalg": {"SciPy": LINALG}, "smelt.nn": {"PyTorch": NN}, "smelt.nn.init": {"PyTorch": INIT},
    "smelt.random": RANDOM, "smelt.optimizers": {"PyTorch": OPTIMIZERS},
    "smelt.nn.Module": {"PyTorch": MODULE}, "smelt.optimizers.Optimizer": {"PyTorch": OPTIMIZER},
    "smelt.compile": {"JAX": STAGES},
}  # fmt: skip


def said_elsewhere(name: str, where: str) -> str:
    """The end of a message about a name that `where` does not have: what is written here. "" if no library has it."""
    for library, names in _LIBRARIES.get(where, {}).items():
        if name in names:
            return f"; what {library} calls so is {names[name]}"
    return ""


#: Where names are looked for that another part of smelt does not have.
_PARTS = ("smelt", *(f"smelt.{part}" for part in ("nn", "nn.losses", "nn.init", "linalg", "fft", "random", "fast")),
          "smelt.optimizers", "smelt.utils")  # fmt: skip


def _said_of_other_parts(name: str, where: str) -> str:
    """The same of a name that another part has, as `pad` where `smelt.nn` is asked, or knows from other libraries."""
    if name.startswith("_"):
        return ""
    for part in _PARTS:
        if part != where and name in locks.loaded(part).__all__:
            return f"; there is {part}.{name}"
    return said_elsewhere(name, "smelt")


def missing(name: str, known: list[str], where: str = "smelt") -> MissingNameError:
    """The error about a name that smelt, or a part of it, does not have; `known` are those that it has."""
    return MissingNameError(f"{where} has no {shown(name)}", lambda: _meant(name, known, where), at_user_line(""))


def missing_member(name: str, owner: object, where: str) -> MissingNameError:
    """The error about an attribute that an object of the class `where` does not have."""

    def meant() -> str:
        members = [*(owner if isinstance(owner, Mapping) else ()), *dir(owner)]
        return said_elsewhere(name, where) or did_you_mean(name, [x for x in members if not x.startswith("_")])

    return MissingNameError(f"{type(owner).__name__} has no attribute {shown(name)}", meant, at_user_line(""))


def _meant(name: str, known: list[str], where: str) -> str:
    if said := said_elsewhere(name, where) or _said_of_other_parts(name, where):
        return said
    return "; errors are in smelt.errors" if name in ERRORS else did_you_mean(name, known, f"{where}.")
