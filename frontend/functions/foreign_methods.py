"""Methods and attributes that arrays of NumPy, PyTorch and JAX have, and what they are here.

Asking an array for one is an AttributeError that says what to write. Each is a descriptor, for a `__getattr__` of the
class would make every attribute that there is slower.
"""

from __future__ import annotations

from typing import NoReturn

from smelt.ir.errors import MissingNameError, at_user_line

from ..lazy.arrays import array

__all__: list[str] = []

#: Functions that PyTorch or NumPy have as methods, too.
_FUNCTIONS = (
    "acos acosh add allclose angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh argpartition argsort "
    "argwhere asin asinh atan atan2 atanh bincount bitwise_and bitwise_or bitwise_xor broadcast_to ceil clip "
    "compress contiguous copysign cosh count_nonzero diff digamma divide equal erf erfinv expm1 flip floor "
    "floor_divide fmod greater greater_equal histogram inner isclose isfinite isinf isnan kron less less_equal "
    "lgamma logaddexp logical_and logical_not logical_or logical_xor logit matmul maximum median minimum multiply "
    "nan_to_num nanmean nansum negative nonzero not_equal outer partition ptp quantile ravel remainder resize roll "
    "searchsorted sigmoid sign sinh softmax sort subtract take tan tanh tile topk trace tril triu trunc unflatten "
    "unique where"
)
_OF_FUNCTIONS = {name: f"smelt.{name}(x, …)" for name in _FUNCTIONS.split()}
_GRADIENT = "nothing: smelt.grad(f) is a function that gives the derivative of f"
_DEVICE = "nothing: what is computed under `with smelt.stream(device):` is on that device"

#: By library.
ELSEWHERE = {
    "NumPy": {
        "copy": "smelt.array(x)", "dot": "x @ y", "fill": "x[...] = value", "tofile": "numpy.asarray(x).tofile(file)",
        "tobytes": "numpy.asarray(x).tobytes()", "flat": "x.flatten()", "strides": "numpy.asarray(x).strides",
        "repeat": "smelt.repeat(x, n, axis); PyTorch's is smelt.tile(x, counts)", "flags": "numpy.asarray(x).flags",
        "put": "x[indices] = values", "choose": "smelt.where", "conjugate": "x.conj()",
    },
    "PyTorch": {
        **_OF_FUNCTIONS,
        "numpy": "numpy.array(x)", "detach": "smelt.stop_gradient(x)", "clone": "smelt.array(x)",
        "data": "x itself, or smelt.stop_gradient(x)", **dict.fromkeys(("cpu", "cuda"), _DEVICE), "is_cuda": "x.device",
        "to": "x.astype(dtype); what is computed under `with smelt.stream(device):` is on that device",
        "type": "x.astype(dtype)", "type_as": "x.astype(y.dtype)", "float": "x.astype(smelt.float32)",
        "double": "x.astype(smelt.float64)", "half": "x.astype(smelt.float16)", "long": "x.astype(smelt.int64)",
        "bfloat16": "x.astype(smelt.bfloat16)", "int": "x.astype(smelt.int32)", "bool": "x.astype(smelt.bool_)",
        "dim": "the attribute x.ndim", "numel": "the attribute x.size", "element_size": "the attribute x.itemsize",
        "permute": "x.transpose(*axes)", "t": "x.T", "mH": "x.conj().mT", "adjoint": "x.conj().mT",
        "unsqueeze": "smelt.expand_dims(x, axis), or x[:, None]", "expand": "smelt.broadcast_to(x, shape)",
        "expand_as": "smelt.broadcast_to(x, y.shape)", "reshape_as": "x.reshape(y.shape)",
        "view_as": "x.reshape(y.shape)", "unfold": "smelt.as_strided", "unbind": "smelt.unstack(x, axis)",
        "chunk": "smelt.split(x, n, axis)", "narrow": "x[start : start + length]", "norm": "smelt.linalg.norm(x)",
        "mm": "x @ y", "bmm": "x @ y", "mv": "x @ y", "addmm": "smelt.addmm(x, a, b)",
        "clamp": "smelt.clip(x, low, high)",
        "masked_fill": "smelt.where(mask, value, x)", "masked_select": "x[mask]",
        "index_select": "smelt.take(x, i, axis)",
        "gather": "smelt.take_along_axis(x, indices, axis)",
        "scatter": "smelt.put_along_axis(x, indices, values, axis)",
        "scatter_": "smelt.put_along_axis(x, indices, values, axis)", "scatter_add": "x.at[indices].add(values)",
        "scatter_add_": "x = x.at[indices].add(values)", "index_add": "x.at[indices].add(values)",
        "index_add_": "x = x.at[indices].add(values)", "masked_fill_": "x[mask] = value", "lerp": "x + w * (y - x)",
        "add_": "x += y", "sub_": "x -= y", "mul_": "x *= y", "div_": "x /= y", "zero_": "x[...] = 0",
        "fill_": "x[...] = value", "copy_": "x[...] = y", "clamp_": "x = smelt.clip(x, low, high)",
        "add": "x + y", "sub": "x - y", "mul": "x * y", "div": "x / y", "pow": "x ** y", "neg": "-x", "eq": "x == y",
        "ne": "x != y", "gt": "x > y", "ge": "x >= y", "lt": "x < y", "le": "x <= y", "relu": "smelt.nn.relu(x)",
        "amax": "x.max(axis)", "amin": "x.min(axis)", "requires_grad": _GRADIENT, "requires_grad_": _GRADIENT,
        "grad": _GRADIENT, "backward": _GRADIENT, "is_leaf": _GRADIENT, "grad_fn": _GRADIENT,
        "new_zeros": "smelt.zeros(shape, x.dtype)", "new_ones": "smelt.ones(shape, x.dtype)",
        "is_contiguous": "nothing: the order in memory is no part of an array", "stride": "numpy.asarray(x).strides",
        "is_floating_point": "smelt.issubdtype(x.dtype, smelt.floating)", "bernoulli": "smelt.random.bernoulli(x)",
        "multinomial": "smelt.random.categorical", "log_softmax": "smelt.nn.log_softmax(x)",
        "det": "smelt.linalg.det(x)",
        "inverse": "smelt.linalg.inv(x)", "svd": "smelt.linalg.svd(x)", "repeat_interleave": "smelt.repeat(x, n, axis)",
    },
    "JAX": {
        "block_until_ready": "smelt.eval(x)", "sharding": "nothing: an array lies on one device",
    },
}  # fmt: skip


class _Elsewhere:
    """A name of `ELSEWHERE` in the class of arrays. It is no part of the reference: @private."""

    def __init__(self, said: str) -> None:
        self.said = said

    def __get__(self, instance: array | None, owner: type) -> NoReturn:
        raise MissingNameError(at_user_line(self.said))


_FOREIGN = {
    name: f"smelt.array has no {name!r}; what {library} calls so is {here}"
    for library, names in ELSEWHERE.items()
    for name, here in names.items()
}


def _dir(self: array) -> list[str]:
    return [name for name in object.__dir__(self) if name not in _FOREIGN]


def attach() -> None:
    """Put them into the class of arrays, where `dir` of an array leaves them out."""
    for name, said in _FOREIGN.items():
        setattr(array, name, _Elsewhere(said))
    setattr(array, "__dir__", _dir)  # noqa: B010
