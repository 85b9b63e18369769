"""A program that is interrupted once, after so many seconds of processor time, and then has to compute right.

    python interrupted_program.py PHASE SECONDS

It prints where it was interrupted, and "right" at its end. Ending by KeyboardInterrupt is right as well.
"""

import faulthandler
import signal
import sys
import traceback

faulthandler.dump_traceback_later(100, exit=True)


def importing():
    import smelt

    return smelt


def compiling():
    smelt = importing()
    f = smelt.compile(lambda x, y: (smelt.softmax(x @ y, axis=-1) * 2).sum(axis=0))
    x = smelt.ones((40, 40))
    assert abs(f(x, x).sum().item() - 80) < 1e-3
    g = smelt.compile(smelt.value_and_grad(lambda x: smelt.vmap(lambda row: (row * row).sum())(x).sum()))
    value, gradient = g(x)
    assert value.item() == 1600 and gradient.sum().item() == 3200


def looping():
    smelt = importing()
    endless = smelt.compile(lambda x: smelt.while_loop(lambda s: (s * s).all(), lambda s: -s, x))
    while armed():
        smelt.eval(endless(smelt.ones((1000,))))


def evaluating():
    smelt = importing()
    import numpy as np  # after smelt: NumPy does not survive an interrupt of its import, but where smelt imports it

    while armed():
        x = smelt.array(np.arange(100_000, dtype=np.float32))
        for i in range(20):
            x = smelt.where(x > i, x + 1, x) * 1
        assert x[0].item() == 0 and x[-1].item() == 100_019, x
        d = smelt.grad(lambda x: (x * x * smelt.stop_gradient(x)).sum())(smelt.ones((300, 300)))
        assert d.sum().item() == 180_000
        with smelt.stream(smelt.reference), smelt.printoptions(precision=3):
            assert str(smelt.ones((2,)) / 3) == "array([0.333, 0.333], dtype=float32)"
        smelt.random.seed(3)
        smelt.eval(smelt.random.normal((100, 100)).sum())


def armed():
    return signal.getitimer(signal.ITIMER_PROF)[0] > 0


def verify():
    """Everything works afterwards, and nothing is left switched on."""
    import numpy as np

    import smelt

    assert smelt.default_device() == smelt.cpu and smelt.get_printoptions().precision == -1
    x = np.linspace(-1, 1, 90_000, dtype=np.float32).reshape(300, 300)
    for _ in range(2):  # the second time in other threads' and caches' sight
        a = smelt.array(x)
        f = smelt.compile(lambda a: smelt.exp(-a * a).sum(axis=1) + smelt.sort(a, axis=1)[:, 0])
        np.testing.assert_allclose(np.array(f(a)), np.exp(-x * x).sum(1) + x.min(1), rtol=1e-5)
        g = smelt.grad(lambda a: smelt.vmap(lambda row: (row**3).sum())(a).sum())
        np.testing.assert_allclose(np.array(g(a)), 3 * x * x, rtol=1e-5, atol=1e-6)
        total = smelt.compile(lambda n: smelt.while_loop(lambda s: s < n, lambda s: s + 3, smelt.array(0)))
        assert total(smelt.array(1000)).item() == 1002
        lazy = (a @ a).sum() + smelt.random.uniform(shape=(300, 300)).max()
        assert abs(lazy.item() - (x @ x).sum()) < 2
        assert len(smelt.array(x)[:, ::2].tolist()[0]) == 150
    compiling()


def main():
    phase, seconds = sys.argv[1], float(sys.argv[2])
    signal.signal(signal.SIGPROF, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        globals()[phase]()
        signal.setitimer(signal.ITIMER_PROF, 0)
        print("not interrupted")
    except KeyboardInterrupt as error:
        frames = traceback.extract_tb(error.__traceback__)
        print("interrupted at", " < ".join(f"{f.filename.rpartition('/')[2]}:{f.lineno}" for f in frames[:-6:-1]))
    signal.signal(signal.SIGPROF, signal.SIG_IGN)
    verify()
    print("right")


main()
