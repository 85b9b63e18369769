"""Derives the polynomial coefficients in ``ir/elementary/coefficients.py``.

    python benchmarks/coefficients.py > ir/elementary/coefficients.py

Each polynomial interpolates a smooth function at the Chebyshev nodes of its interval (within a
factor of two of the minimax error), in 60 digits with mpmath, and is then rounded to the dtype.
The functions are what remains after the leading terms, so that these stay exact in the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from mpmath import mp, mpf

mp.dps = 60


def fit(f: Callable[[mpf], mpf], low: float, high: float, degree: int) -> list[mpf]:
    """Monomial coefficients, lowest first, of the Chebyshev interpolant of `f` on [low, high]."""
    n = degree + 1
    centre, half = (mpf(low) + high) / 2, (mpf(high) - low) / 2
    nodes = [mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    values = [f(centre + half * t) for t in nodes]
    previous, current = [mpf(1)], [mpf(0), mpf(1)]
    total = [mpf(0)] * n
    for j in range(n):
        weight = sum(v * mp.cos(j * mp.acos(t)) for v, t in zip(values, nodes)) * (2 if j else 1) / n
        basis = previous if j == 0 else current
        for i, c in enumerate(basis):
            total[i] += weight * c
        if j:
            doubled = [mpf(0)] + [2 * c for c in current]
            for i, c in enumerate(previous):
                doubled[i] -= c
            previous, current = current, doubled
    # substitute t = (x - centre) / half
    out = [mpf(0)] * n
    for c in reversed(total):
        shifted = [mpf(0)] * n
        for i in range(n):
            shifted[i] -= out[i] * centre / half
            if i:
                shifted[i] += out[i - 1] / half
        out = shifted
        out[0] += c
    return out


def maximum_error(f: Callable[[mpf], mpf], low: float, high: float, coefficients: Sequence[mpf]) -> float:
    """The largest error of a polynomial relative to `f`, on 200 points."""
    worst = mpf(0)
    for i in range(201):
        x = mpf(low) + (mpf(high) - low) * i / 200
        worst = max(worst, abs(mp.polyval(list(reversed(coefficients)), x) - f(x)) / (abs(f(x)) or 1))
    return float(worst)


def weighted(f: Callable[[mpf], mpf], weight: Callable[[mpf], mpf], low: float, high: float, degree: int) -> list[mpf]:
    """Coefficients that minimize the largest error times `weight`, by Lawson's iteration."""
    count, n = 120, degree + 1
    centre, half = (mpf(low) + high) / 2, (mpf(high) - low) / 2
    xs = [centre + half * mp.cos(mp.pi * (i + mpf(0.5)) / count) for i in range(count)]
    rows = [[x**i for i in range(n)] for x in xs]
    fs, ws, factors = [f(x) for x in xs], [weight(x) for x in xs], [mpf(1)] * count
    best, found = mp.inf, []
    for _ in range(25):
        a, b = mp.matrix(n, n), mp.matrix(n, 1)
        for row, value, w, factor in zip(rows, fs, ws, factors):
            for i in range(n):
                b[i] += factor * w * w * row[i] * value
                for j in range(n):
                    a[i, j] += factor * w * w * row[i] * row[j]
        solution = list(mp.lu_solve(a, b))
        errors = [abs(mp.fdot(solution, row) - v) * w for row, v, w in zip(rows, fs, ws)]
        worst = max(errors)
        if worst < best:
            best, found = worst, solution
        factors = [factor * (e / worst + mpf(0.02)) for factor, e in zip(factors, errors)]
        factors = [factor / max(factors) for factor in factors]
    return found


def quotient(f: Callable[[mpf], mpf], low: float, high: float, above: int, below: int) -> list[list[mpf]]:
    """Coefficients of P and Q, of these degrees and Q(0) = 1, that minimize the largest relative error of P / Q.

    Lawson's iteration over P - f·Q = 0, each equation divided by f·Q of the iteration before.
    """
    count, n = 160, above + 1 + below
    centre, half = (mpf(low) + high) / 2, (mpf(high) - low) / 2
    xs = [centre + half * mp.cos(mp.pi * (i + mpf(0.5)) / count) for i in range(count)]
    fs, scales, factors = [f(x) for x in xs], [1 / f(x) for x in xs], [mpf(1)] * count
    best, found = mp.inf, []
    for _ in range(60):
        a, b = mp.matrix(n, n), mp.matrix(n, 1)
        for x, value, scale, factor in zip(xs, fs, scales, factors):
            row = [x**i * scale for i in range(above + 1)] + [-value * x**i * scale for i in range(1, below + 1)]
            for i in range(n):
                b[i] += factor * row[i] * value * scale
                for j in range(n):
                    a[i, j] += factor * row[i] * row[j]
        solution = list(mp.lu_solve(a, b))
        p, q = solution[: above + 1], [mpf(1), *solution[above + 1 :]]
        divisors = [mp.polyval(q[::-1], x) for x in xs]
        errors = [abs(mp.polyval(p[::-1], x) / d / v - 1) for x, v, d in zip(xs, fs, divisors)]
        if max(errors) < best:
            best, found = max(errors), [p, q]
        scales = [1 / (v * d) for v, d in zip(fs, divisors)]
        factors = [factor * (e / max(errors) + mpf(0.02)) for factor, e in zip(factors, errors)]
        factors = [factor / max(factors) for factor in factors]
    return found


def near_zero(f: Callable[[mpf], mpf], at_zero: mpf) -> Callable[[mpf], mpf]:
    """`f` with its limit at 0, and with enough digits around it."""

    def smooth(x: mpf) -> mpf:
        if x == 0:
            return mpf(at_zero)
        with mp.workdps(200):
            return f(x)

    return smooth


def odd(f: Callable[[mpf], mpf]) -> Callable[[mpf], mpf]:
    """(f(s) - s) / s³ as a function of z = s²."""
    return lambda z: (f(mp.sqrt(z)) - mp.sqrt(z)) / (z * mp.sqrt(z))


def erfinv_of_w(w: mpf) -> mpf:
    """erfinv(x) / x where w = -log(1 - x²)."""
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def erfc_scaled(u: mpf) -> mpf:
    """erfc(x)·exp(x²) where u = (x - 2) / (x + 2)."""
    x = 2 * (1 + u) / (1 - u)
    return mp.erfc(x) * mp.exp(x * x)


def of_x(x: mpf) -> mpf:
    """The u of `erfc_scaled`."""
    return (mpf(x) - 2) / (mpf(x) + 2)


SQRT_HALF, SQRT_TWO = mp.sqrt(mpf(1) / 2), mp.sqrt(2)
LN2_HALF = mp.log(2) / 2 * mpf("1.0001")
QUARTER = (mp.pi / 4) ** 2 * mpf("1.001")
ATANH = ((SQRT_TWO - 1) / (SQRT_TWO + 1)) ** 2 * mpf("1.0001")
ATAN = (SQRT_TWO - 1) ** 2 * mpf("1.0001")
TWO_OVER_SQRT_PI = 2 / mp.sqrt(mp.pi)

#: name: (what is approximated, its value at 0, low, high, degree for float32, degree for float64)
FITS = {
    "EXP": (lambda r: (mp.expm1(r) - r) / r**2, 0.5, -LN2_HALF, LN2_HALF, 4, 10),
    "EXP2": (lambda f: mp.expm1(f * mp.log(2)) / f, mp.log(2), -0.5001, 0.5001, 6, 12),
    "EXP2_BFLOAT": (lambda f: mp.expm1(f * mp.log(2)) / f, mp.log(2), -0.5001, 0.5001, 2, None),
    "EXP2_HALF": (lambda f: mp.expm1(f * mp.log(2)) / f, mp.log(2), -0.5001, 0.5001, 3, None),
    "LOG": (lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, mpf(1) / 3, SQRT_HALF - 1, SQRT_TWO - 1, 8, None),
    "ATANH": (odd(mp.atanh), mpf(1) / 3, 0, ATANH, None, 7),
    "POW": (lambda z: (odd(mp.atanh)(z) - mpf(1) / 3) / z, mpf(1) / 5, 0, ATANH, 2, 7),
    "SIN": (odd(mp.sin), -mpf(1) / 6, 0, QUARTER, 2, 5),
    "COS": (lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mpf(1) / 24, 0, QUARTER, 2, 5),
    "SINH": (odd(mp.sinh), mpf(1) / 6, 0, 1, 3, 7),
    "ASIN": (odd(mp.asin), mpf(1) / 6, 0, 0.25, 5, 12),
    "ATAN": (odd(mp.atan), -mpf(1) / 3, 0, ATAN, 5, 11),
    "ERF_HALF": (lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z), TWO_OVER_SQRT_PI, 0, mpf("2.9") ** 2, 8, None),
    "ERF": (lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, TWO_OVER_SQRT_PI - 1, 0, 1, None, 13),
}
#: The same for functions without a problem at 0; the argument is shifted by the first entry.
SHIFTED = {
    "ERFC": (0.0, erfc_scaled, -1 / mpf(3), mpf("4.1") / mpf("8.1"), None, 18),
    "ERFCX": (0.0, lambda u: erfc_scaled(u) * 4 / (1 - u), of_x(0.5), of_x(28), 10, 24),
    "ERFINV": (2.5, near_zero(erfinv_of_w, mp.sqrt(mp.pi) / 2), 0, 5, 9, 22),
    "ERFINV_TAIL": (3.0, lambda s: erfinv_of_w(s * s), mp.sqrt(5), 4.1, 9, None),
    "ERFINV_MIDDLE": (3.0, lambda s: erfinv_of_w(s * s), mp.sqrt(5), 3.7, None, 20),
    "ERFINV_FAR": (5.0, lambda s: erfinv_of_w(s * s), 3.7, 6.1, None, 20),
}

#: float32 only: what is approximated, the weight of its error, low, high, degree.
WEIGHTED = {
    "ERF32": (lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, lambda z: 1, 1e-20, 1, 5),
    # erfc(x)^(1/8): an error in it counts as 8·erfc(x)^(7/8) in erf
    "ERFC_ROOT": (lambda x: mp.erfc(x) ** (mpf(1) / 8), lambda x: 8 * mp.erfc(x) ** (mpf(7) / 8), 1, 4, 7),
}

#: float32 only, quotients of two polynomials: their names, what is approximated, low, high, their degrees.
QUOTIENTS = {
    ("TANH_HALF", "TANH_HALF_BELOW"): (lambda z: mp.tanh(mp.sqrt(z)) / mp.sqrt(z), 1e-20, 25, 2, 3),
}


def literal(value: mpf, size: int) -> str:
    if size == 8:
        return repr(float(value))
    return (
        np.format_float_scientific(np.float32(mp.nstr(value, 20)), unique=True).replace(".e", ".0e").replace("e+00", "")
    )


def main() -> None:
    print('"""Polynomial coefficients, lowest degree first, by the size of the dtype in bytes.\n')
    print("Made by ``benchmarks/coefficients.py``, which says what each polynomial approximates; the")
    print('comment is its error relative to that.\n"""\n')
    table = {name: (0.0, near_zero(f, zero), *rest) for name, (f, zero, *rest) in FITS.items()}
    for name, (shift, f, low, high, *degrees) in {**table, **SHIFTED}.items():
        print(f"{name} = {{")
        shifted = lambda x, f=f, shift=shift: f(x + shift)  # noqa: E731
        for size, degree in zip((4, 8), degrees):
            if degree is None:
                continue
            coefficients = fit(shifted, low - shift, high - shift, degree)
            error = maximum_error(shifted, low - shift, high - shift, coefficients)
            print(f"    {size}: (  # {error:.1e}")
            for c in coefficients:
                print(f"        {literal(c, size)},")
            print("    ),")
        print("}")
    for name, (f, weight, low, high, degree) in WEIGHTED.items():
        coefficients = weighted(f, weight, low, high, degree)
        print(f"{name} = {{\n    4: (")
        for c in coefficients:
            print(f"        {literal(c, 4)},")
        print("    ),\n}")
    for names, (f, low, high, *degrees) in QUOTIENTS.items():
        for name, coefficients in zip(names, quotient(f, low, high, *degrees)):
            print(f"{name} = {{\n    4: (")
            for c in coefficients:
                print(f"        {literal(c, 4)},")
            print("    ),\n}")


if __name__ == "__main__":
    main()
