"""GELU with the exact error function: five operations that become one kernel."""

import smelt


@smelt.compile
def gelu(x):
    return x * (1 + smelt.erf(x / 2**0.5)) / 2


if __name__ == "__main__":
    x = smelt.array([-1.0, 0.0, 1.0])
    print(gelu(x))
    print(smelt.grad(lambda x: gelu(x).sum())(x))
