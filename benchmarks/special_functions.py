"""The special functions: their coefficients, and the table of their errors; both by mpmath.

python -m benchmarks.special_functions coefficients   writes frontend/functions/special_coefficients.py
python -m benchmarks.special_functions errors          prints the table of docs/accuracy.md
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

Function = Callable[[Any], Any]
DIGITS = 50
OUT = Path(__file__).parents[1] / "frontend" / "functions" / "special_coefficients.py"
HEAD = '''"""Coefficients of the special functions, by mpmath at 50 digits: benchmarks/special_functions.py.

Chebyshev series, or where they say so polynomials, in t from -1 to 1; each holds what float64 needs, and a function
takes as many as its dtype needs.
"""

'''


def chebyshev(f: Function, count: int) -> list[Any]:
    """The first coefficients of a function on [-1, 1]; those at the end that float64 does not see are left out."""
    n = 4 * count
    angles = [mp.pi * (k + mp.mpf(1) / 2) / n for k in range(n)]
    values = [f(mp.cos(angle)) for angle in angles]
    found = [2 / mp.mpf(n) * sum(v * mp.cos(j * a) for v, a in zip(values, angles)) for j in range(count)]
    found[0] /= 2
    while abs(found[-1]) < mp.mpf(2) ** -57 * max(map(abs, found)):
        found.pop()
    return found


def polynomial(series: Sequence[Any]) -> list[Any]:
    """The same function in powers of t."""
    before, now = [mp.mpf(0)], [mp.mpf(1)]
    found = [mp.mpf(0)] * len(series)
    for k, c in enumerate(series):
        for i, v in enumerate(now):
            found[i] += c * v
        after = [mp.mpf(0)] + [v * (2 if k else 1) for v in now]
        for i, v in enumerate(before):
            after[i] -= v
        before, now = now, after
    return found


def scaled_erfc(t: Any) -> Any:
    x = mp.mpf(15) / 4 * (1 + t) / (1 - t)
    if x < 60:
        return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)
    return (
        (1 + 2 * x) * sum((-1) ** j * mp.fac2(2 * j - 1) / (2 * x * x) ** j for j in range(12)) / (x * mp.sqrt(mp.pi))
    )


#: In the inverse of erfc: s = √-log z from z = 1/2 to the least float64; it is a series in 1 / (s + SHIFT).
ENDS, SHIFT = (mp.sqrt(mp.log(2)), mp.mpf(273) / 10), 2


def inverse_erfc(t: Any) -> Any:
    high, low = (1 / (end + SHIFT) for end in ENDS)
    s = 1 / ((low + high) / 2 + t * (high - low) / 2) - SHIFT
    start = mp.sqrt(s * s - mp.log(mp.sqrt(mp.pi) * max(s, 1)))
    return mp.findroot(lambda u: mp.log(mp.erfc(u)) + s * s, start if mp.im(start) == 0 else s / 2) / s


def hankel(order: int, second: bool) -> Function:
    """P, or x / 8 times Q, of √(πx / 2)·J(x) = P·cos χ - Q·sin χ."""

    def value(t: Any) -> Any:
        y = mp.sqrt((t + 1) / 2)
        with mp.workdps(DIGITS + 20):
            x = 8 / y
            angle = x - (2 * order + 1) * mp.pi / 4
            j, y_ = (mp.sqrt(mp.pi * x / 2) * f(order, x) for f in (mp.besselj, mp.bessely))
            if second:
                return (-j * mp.sin(angle) + y_ * mp.cos(angle)) / y
            return j * mp.cos(angle) + y_ * mp.sin(angle)

    return value


def near(f: Function) -> Function:
    return lambda t: f(4 * (t + 1))


def far(f: Function) -> Function:
    return lambda t: f(16 / (t + 1))


def by_square(f: Function) -> Function:
    return lambda t: f(mp.sqrt(32 * (t + 1)))


def between(low: float, high: float, f: Function) -> Function:
    return lambda t: f((high + low) / mp.mpf(2) + t * (high - low) / mp.mpf(2))


def second_kind() -> list[tuple[str, str, list[Any]]]:
    """What Y and K are besides logarithms, and of asymptotic forms."""
    found = []
    for n, sub in ((0, "₀"), (1, "₁")):
        pole, power = " + 2 / (πx)" * n, " / x" * n

        def y(x: Any, n: int = n) -> Any:
            with mp.workdps(DIGITS + 30):
                rest = mp.bessely(n, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(n, x) - mp.mpf(n) / x)
                return rest / x**n

        def k(x: Any, n: int = n) -> Any:
            with mp.workdps(DIGITS + 30):
                return (mp.besselk(n, x) + (-1) ** n * mp.log(x / 2) * mp.besseli(n, x)) * x**n

        text = f"(Y{sub}(x) - 2/π·log(x)·J{sub}(x){pole}){power}, x² = 32t + 32."
        found.append((f"Y{n}_SMALL", text, chebyshev(by_square(y), 36)))
        text = f"K{sub}(x) + log(x/2)·I₀(x)" if n == 0 else "x·(K₁(x) - log(x/2)·I₁(x))"
        found.append((f"K{n}_SMALL", f"{text}, x² = 2t + 2.", chebyshev(lambda t: k(mp.sqrt(2 * t + 2)), 24)))
        found.append((f"K{n}_LARGE", f"√x·exp(x)·K{sub}(x), x = 4 / (t + 1).", chebyshev(
            lambda t: (lambda x: mp.sqrt(x) * mp.exp(x) * mp.besselk(n, x))(4 / (t + 1)), 40)))  # noqa: B023
    return found


#: In exponential integrals: E₁ is in t = (x - 2 - c) / (x + c) from 1 on; where the series of Ei meet.
MIDDLE, MEET = 2, (3, 8, 20)


def exponential_integrals() -> list[tuple[str, str, list[Any]]]:
    root = mp.findroot(mp.ei, 0.3725)

    def near_root(x: Any) -> Any:
        with mp.workdps(DIGITS + 20):
            return (mp.ei(x) - mp.log(x / root)) / (x - root)

    def grown(x: Any) -> Any:
        return x * mp.exp(-x) * mp.ei(x)

    c, (a, b, e) = MIDDLE, MEET
    return [
        ("E1_SMALL", "E₁(x) + log x, x = (t + 1) / 2.", chebyshev(between(0, 1, lambda x: mp.e1(x) + mp.log(x)), 24)),
        ("E1_LARGE", f"x·exp(x)·E₁(x), t = (x - {2 + c}) / (x + {c}).", chebyshev(
            lambda t: (lambda x: x * mp.exp(x) * mp.e1(x))((2 + c + c * t) / (1 - t)), 48)),
        ("EI_SMALL", f"(Ei(x) - log(x / root)) / (x - root), x = {a / 2}·(t + 1).",
         chebyshev(between(0, a, near_root), 30)),
        ("EI_MIDDLE", f"x·exp(-x)·Ei(x), x from {a} to {b}.", chebyshev(between(a, b, grown), 36)),
        ("EI_LARGE", f"The same, 1 / x from 1 / {e} to 1 / {b}.",
         chebyshev(between(mp.mpf(1) / e, mp.mpf(1) / b, lambda u: grown(1 / u)), 36)),
        ("EI_FAR", f"The same, 1 / x from 0 to 1 / {e}; and Ei's root in two words.",
         chebyshev(between(0, mp.mpf(1) / e, lambda u: grown(1 / u)), 40)),
    ]  # fmt: skip


#: Sine and cosine integrals, and those of Fresnel, are series in x² and x⁴ up to here, and of asymptotic forms beyond.
SICI_END, FRESNEL_END = 8, 2


def oscillating_integrals() -> list[tuple[str, str, list[Any]]]:
    """Si, Ci, S and C near 0; and the f and g of Si = π/2 - f·cos - g·sin, Ci = f·sin - g·cos, likewise S and C."""
    end, other = SICI_END, FRESNEL_END

    def by_power(end: int, power: int, f: Function) -> Function:
        return lambda t: f(end * mp.power((t + 1) / 2, mp.mpf(1) / power))

    def beyond(end: int, power: int, f: Function) -> Function:
        return lambda t: f(end * mp.power((t + 1) / 2, -mp.mpf(1) / power))

    def cosine(x: Any) -> Any:
        with mp.workdps(DIGITS + 30):
            return (mp.ci(x) - mp.log(x) - mp.euler) / x**2

    def sici_f(x: Any) -> Any:
        with mp.workdps(DIGITS + 30):
            return x * (mp.ci(x) * mp.sin(x) + (mp.pi / 2 - mp.si(x)) * mp.cos(x))

    def sici_g(x: Any) -> Any:
        with mp.workdps(DIGITS + 30):
            return x**2 * ((mp.pi / 2 - mp.si(x)) * mp.sin(x) - mp.ci(x) * mp.cos(x))

    def fresnel_f(x: Any) -> Any:
        with mp.workdps(DIGITS + 30):
            angle, s, c = mp.pi * x * x / 2, mp.fresnels(x) - mp.mpf(1) / 2, mp.fresnelc(x) - mp.mpf(1) / 2
            return x * (c * mp.sin(angle) - s * mp.cos(angle))

    def fresnel_g(x: Any) -> Any:
        with mp.workdps(DIGITS + 30):
            angle, s, c = mp.pi * x * x / 2, mp.fresnels(x) - mp.mpf(1) / 2, mp.fresnelc(x) - mp.mpf(1) / 2
            return -(x**3) * (s * mp.sin(angle) + c * mp.cos(angle))

    near, far = f"x² = {end**2 // 2}·(t + 1)", f"{2 * end**2} / x² = t + 1"
    near4, far4 = f"x⁴ = {other**4 // 2}·(t + 1)", f"{2 * other**4} / x⁴ = t + 1"
    return [
        ("SI_SMALL", f"Si(x) / x, {near}.", chebyshev(by_power(end, 2, lambda x: mp.si(x) / x), 24)),
        ("CI_SMALL", f"(Ci(x) - γ - log x) / x², {near}.", chebyshev(by_power(end, 2, cosine), 24)),
        ("SICI_F", f"x·f(x) of Si and Ci, {far}.", chebyshev(beyond(end, 2, sici_f), 48)),
        ("SICI_G", f"x²·g(x) of Si and Ci, {far}.", chebyshev(beyond(end, 2, sici_g), 48)),
        ("S_SMALL", f"S(x) / x³, {near4}.", chebyshev(by_power(other, 4, lambda x: mp.fresnels(x) / x**3), 24)),
        ("C_SMALL", f"C(x) / x, {near4}.", chebyshev(by_power(other, 4, lambda x: mp.fresnelc(x) / x), 24)),
        ("FRESNEL_F", f"x·f(x) of S and C, {far4}.", chebyshev(beyond(other, 4, fresnel_f), 48)),
        ("FRESNEL_G", f"x³·g(x) of S and C, {far4}.", chebyshev(beyond(other, 4, fresnel_g), 48)),
        ("SPENCE", "Li₂(-w) / w, w = t / 2.", chebyshev(lambda t: mp.re(mp.polylog(2, -t / 2)) / (t / 2), 40)),
    ]


def coefficients() -> str:
    mp.mp.dps = DIGITS
    root = mp.findroot(mp.digamma, 1.46)
    gamma = polynomial(chebyshev(lambda t: mp.loggamma(2 + t / 2) / ((1 + t / 2) * t / 2), 26))
    psi = polynomial(chebyshev(lambda t: mp.digamma((3 + t) / 2) / ((3 + t) / 2 - root), 30))
    series: list[tuple[str, str, list[Any]]] = [
        ("LGAMMA", "Polynomial of log Γ(x) / ((x - 1)(x - 2)), x = 2 + t / 2.", gamma),
        ("DIGAMMA", "Polynomial of ψ(x) / (x - root), x = 3 / 2 + t / 2; and the root in two words.", psi),
        ("ERFCX", "(1 + 2x)·exp(x²)·erfc(x), t = (x - 15 / 4) / (x + 15 / 4).", chebyshev(scaled_erfc, 36)),
        ("ERFCINV", "Polynomial of u / s, s = √-log(erfc u) from √log 2 (t = 1) to 27.3, linear in 1 / (s + 2).",
         polynomial(chebyshev(inverse_erfc, 14))),
    ]
    for n, sub in ((0, "₀"), (1, "₁")):
        small, by_x = (f"I{sub}(x)", "") if n == 0 else (f"I{sub}(x)", " / x")
        series += [
            (f"I{n}_SMALL", f"exp(-x)·{small}{by_x}, x = 4t + 4.",
             chebyshev(near(lambda x, n=n: mp.exp(-x) * mp.besseli(n, x) / x**n), 40)),
            (f"I{n}_LARGE", f"√x·exp(-x)·I{sub}(x), x = 16 / (t + 1).",
             chebyshev(far(lambda x, n=n: mp.sqrt(x) * mp.exp(-x) * mp.besseli(n, x)), 36)),
        ]  # fmt: skip
    for n, sub in ((0, "₀"), (1, "₁")):
        series.append((f"J{n}_SMALL", f"J{sub}(x){' / x' * n}, x² = 32t + 32.",
                       chebyshev(by_square(lambda x, n=n: mp.besselj(n, x) / x**n), 30)))  # fmt: skip
    for n, sub in ((0, "₀"), (1, "₁")):
        series.append((f"J{n}_P", f"Hankel's P of J{sub}, 64 / x² = (t + 1) / 2.", chebyshev(hankel(n, False), 26)))
        series.append((f"J{n}_Q", f"x / 8 times Hankel's Q of J{sub}.", chebyshev(hankel(n, True), 26)))
    series += [*second_kind(), *exponential_integrals(), *oscillating_integrals()]
    roots = {"DIGAMMA": ("ROOT", root), "EI_FAR": ("EI_ROOT", mp.findroot(mp.ei, 0.3725))}
    lines = []
    for name, what, found in series:
        numbers = ", ".join(repr(float(c)) for c in found) + ","
        indent = " " * 4
        lines += [
            f"#: {what}",
            f"{name} = (",
            *textwrap.wrap(numbers, 114, initial_indent=indent, subsequent_indent=indent),
        ]
        lines.append(")  # fmt: skip")
        if name in roots:
            called, place = roots[name]
            high = float(np.float32(float(place)))
            lines.append(f"{called} = ({high!r}, {float(place - mp.mpf(high))!r})")
    return HEAD + "\n".join(lines) + "\n"


def spread(low: float, high: float, count: int, rng: np.random.Generator) -> np.ndarray:
    return np.exp(rng.uniform(np.log(low), np.log(high), count))


def erfcinv(z: Any) -> Any:
    return mp.erfinv(1 - z) if z > 0.1 else mp.findroot(lambda u: mp.log(mp.erfc(u) / z), mp.sqrt(-mp.log(z)))


def subjects(count: int) -> dict[str, tuple[Callable[..., Any], list[np.ndarray], str]]:
    """By name: the truth, operands, and what these are."""
    rng = np.random.default_rng(1)
    x, a, b = rng.uniform(-50, 50, count), spread(1e-2, 3e3, count, rng), spread(0.05, 400, count, rng)
    about = np.abs(a + 2 * np.sqrt(a) * rng.normal(size=count))
    c = spread(0.05, 400, count, rng)
    mean = b / (b + c)
    inside = np.clip(mean + 2 * np.sqrt(mean * (1 - mean) / (b + c + 1)) * rng.normal(size=count), 1e-3, 1 - 1e-3)
    wide = np.concatenate([rng.uniform(0, 10, count // 2), spread(1e-12, 1e12, count - count // 2, rng)])
    other = np.random.default_rng(2)
    above = np.concatenate([other.uniform(0, 10, count // 2), spread(1e-6, 50, count - count // 2, other)])
    tails = np.concatenate([other.uniform(0, 1, count // 2), spread(1e-30, 1, count - count // 2, other)])
    signed = above * np.where(np.arange(count) % 4 == 0, -1, 1)
    return {
        "erfc": (mp.erfc, [rng.uniform(-6, 9, count)], "-6 … 9"),
        "erfcinv": (erfcinv, [tails], "10⁻³⁰ … 1"),
        "ndtri": (lambda x: -mp.sqrt(2) * erfcinv(2 * x), [tails], "10⁻³⁰ … 1"),
        "logit": (lambda x: mp.log(x / (1 - x)), [rng.uniform(0, 1, count)], "0 … 1"),
        "lgamma": (mp.loggamma, [wide], "0 … 10¹²"),
        "digamma": (mp.digamma, [wide], "0 … 10¹²"),
        "polygamma": (mp.polygamma, [np.full(count, 2.0), spread(0.05, 50, count, rng)], "n = 2, 0.05 … 50"),
        "zeta": (mp.zeta, [1 + spread(0.05, 15, count, rng), spread(0.05, 15, count, rng)], "1.05 … 16, 0.05 … 15"),
        "i0e": (lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), [x], "-50 … 50"),
        "i1e": (lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), [x], "-50 … 50"),
        "i0": (lambda x: mp.besseli(0, x), [x], "-50 … 50"),
        "i1": (lambda x: mp.besseli(1, x), [x], "-50 … 50"),
        "j0": (lambda x: mp.besselj(0, x), [x], "-50 … 50"),
        "j1": (lambda x: mp.besselj(1, x), [x], "-50 … 50"),
        "y0": (lambda x: mp.bessely(0, x), [above], "10⁻⁶ … 50"),
        "y1": (lambda x: mp.bessely(1, x), [above], "10⁻⁶ … 50"),
        "k0": (lambda x: mp.besselk(0, x), [above], "10⁻⁶ … 50"),
        "k1": (lambda x: mp.besselk(1, x), [above], "10⁻⁶ … 50"),
        "k0e": (lambda x: mp.exp(x) * mp.besselk(0, x), [above], "10⁻⁶ … 50"),
        "k1e": (lambda x: mp.exp(x) * mp.besselk(1, x), [above], "10⁻⁶ … 50"),
        "exp1": (mp.e1, [above], "10⁻⁶ … 50"),
        "expi": (mp.ei, [signed], "±10⁻⁶ … 50"),
        "gamma": (mp.gamma, [other.uniform(-30, 30, count)], "-30 … 30"),
        "beta": (mp.beta, [b, c], "0.05 … 400"),
        "factorial": (mp.factorial, [other.uniform(0, 30, count)], "0 … 30"),
        "spence": (lambda x: mp.re(mp.polylog(2, 1 - x)), [above * above], "10⁻¹² … 2500"),
        "ellipk": (mp.ellipk, [1 - above], "-49 … 1"),
        "ellipe": (mp.ellipe, [1 - above], "-49 … 1"),
        "expn": (lambda x: mp.expint(3, x), [above], "n = 3, 10⁻⁶ … 50"),
        "sici": (mp.si, [above], "Si, 10⁻⁶ … 50"),
        "sici[1]": (mp.ci, [above], "Ci, 10⁻⁶ … 50"),
        "fresnel": (mp.fresnels, [signed], "S, ±10⁻⁶ … 50"),
        "fresnel[1]": (mp.fresnelc, [signed], "C, ±10⁻⁶ … 50"),
        "gammainc": (lambda a, x: mp.gammainc(a, 0, x, regularized=True), [a, about], "0.01 … 3000, 2σ"),
        "gammaincc": (lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True), [a, about], "0.01 … 3000, 2σ"),
        "betainc": (lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True), [b, c, inside], "0.05 … 400, 2σ"),
    }


#: Of these the error is told in units of the last place of 1 where they are smaller, for they have zeros.
ABSOLUTE = ("j0", "j1", "y0", "y1", "sici[1]")


def function(name: str) -> Function:
    """That of smelt; of several results one, and of an order the third."""
    import smelt

    called = getattr(smelt, name.removesuffix("[1]"))
    if name == "expn":
        return lambda x: called(3, x)
    if name.startswith(("sici", "fresnel")):
        return lambda x: called(x)[int(name.endswith("[1]"))]
    return called


def error(name: str, truth: Callable[..., Any], operands: Sequence[np.ndarray], dtype: Any) -> np.ndarray:
    """In units of the last place."""
    import smelt

    xs = [x.astype(dtype) for x in operands]
    found = np.asarray(function(name)(*[smelt.array(x, np.dtype(dtype).name) for x in xs]))
    errors = []
    with mp.workdps(40):
        for i, value in enumerate(found):
            want = truth(*[mp.mpf(float(x[i])) for x in xs])
            size = max(abs(float(want)), 1.0 if name in ABSOLUTE else 0.0)
            unit = mp.mpf(float(np.spacing(np.asarray(size, dtype))))
            errors.append(float(abs(mp.mpf(float(value)) - want) / unit))
    return np.array(errors)


def table(count: int) -> str:
    lines = ["| function | operands | float32, ulp | 90 % | float64, ulp | 90 % |", "|---|---|---|---|---|---|"]
    for name, (truth, operands, where) in subjects(count).items():
        row = [name + ("*" if name in ABSOLUTE else ""), where]
        for dtype in (np.float32, np.float64):
            found = error(name, truth, operands, dtype)
            row += [f"{found.max():.1f}", f"{np.percentile(found, 90):.1f}"]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:] == ["coefficients"]:
        OUT.write_text(coefficients(), encoding="utf-8")
    elif sys.argv[1:] == ["errors"]:
        print(table(400))
    else:
        sys.exit(__doc__)
