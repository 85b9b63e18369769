"""What is said where the value of an array is asked for that is only traced."""

from __future__ import annotations

from smelt.ir.aval import Aval

from .graph import state

_AS_NUMBER = (
    "Arithmetic takes arrays as they are; pass what sets a shape or a number of steps as a Python number, and move "
    "printing outside"
)
#: What asks for a value, by the method that the user's code calls, and what to write in its place.
_ASKED: dict[str, tuple[str, str]] = {
    "__bool__": (
        "bool()", "For a Python `if` on a value use smelt.where or smelt.cond, for a `while` use smelt.while_loop",
    ),
    "__array__": (
        "a conversion to NumPy", "Use smelt's functions in the place of NumPy's, of which it has most under their "
        "names, or convert outside",
    ),
    **{f"__{kind}__": (f"{kind}()", _AS_NUMBER) for kind in ("int", "float", "complex")},
    "__index__": ("a use as a Python index", _AS_NUMBER),
    "__format__": ("a format", _AS_NUMBER),
    "item": (".item()", _AS_NUMBER),
    "tolist": (".tolist()", _AS_NUMBER),
    "eval": ("smelt.eval", "Leave that to the caller, who gets all results at once"),
    # In MLX's words, too, which programs look for so that they go on without it.
    "async_eval": (
        "smelt.async_eval", "Not allowed inside a graph transformation: leave that to the caller, who gets all results "
        "at once",
    ),
}  # fmt: skip
_OTHERWISE = (
    "For a Python `if` on a value use smelt.where or smelt.cond, for a `while` use smelt.while_loop; move printing and "
    ".item() outside"
)
#: The end of a message about an array that a trace has left behind: "it was made while" …
OF_A_TRACE = (
    "smelt.compile, smelt.vmap, smelt.scan or the like traced a function that has returned since. Return such arrays "
    "from the function, or name what it updates, a model and the state of its optimizer, say: "
    "smelt.compile(..., inputs=[model.state, optimizer.state], outputs=[model.state, optimizer.state])"
)


def no_value(aval: Aval, called: str, public: str = "") -> str:
    """What is said of a traced array whose value the method `called` asks for, or the function `public` of smelt."""
    if not state.compiling:
        return f"the value of a traced array ({aval}) was asked for, but it was made while {OF_A_TRACE}"
    sets_size = aval.dtype.is_integer and not aval.shape
    otherwise = (f"smelt.{public}" if public else "", _AS_NUMBER if sets_size else _OTHERWISE)
    what, instead = _ASKED.get(called, otherwise)
    return (
        f"the value of a traced array ({aval}) was asked for{what and f' by {what}'} during function "
        "transformations: inside smelt.compile, smelt.vmap and the functions given to smelt.cond, smelt.scan and the "
        "like arrays have no values yet. "
        f"{instead}, or leave this function uncompiled"
    )
