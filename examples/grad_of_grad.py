"""Transformations nest: derivatives of derivatives, a Hessian, and Newton's method out of them."""

import smelt


def rosenbrock(p):
    """(1 − x)² + 100 (y − x²)², whose minimum is at (1, 1)."""
    x, y = p[0], p[1]
    return (1 - x) ** 2 + 100 * (y - x * x) ** 2


def hessian(f):
    """Rows of the Jacobian of the gradient: vjp of grad, mapped over the unit vectors."""

    def rows(p):
        def row(e):
            return smelt.vjp(smelt.grad(f), [p], [e])[1][0]

        return smelt.vmap(row)(smelt.eye(p.shape[0]))

    return rows


@smelt.compile
def newton_step(p):
    g, h = smelt.grad(rosenbrock)(p), hessian(rosenbrock)(p)
    determinant = h[0, 0] * h[1, 1] - h[0, 1] * h[1, 0]
    inverse = smelt.stack([smelt.stack([h[1, 1], -h[0, 1]]), smelt.stack([-h[1, 0], h[0, 0]])]) / determinant
    return p - inverse @ g


if __name__ == "__main__":
    sine = smelt.sin
    for order in range(4):
        print(f"derivative {order} of sin at 0.5: {sine(smelt.array(0.5)).item():+.6f}")
        sine = smelt.grad(sine)

    p = smelt.array([-1.2, 1.0])
    for i in range(8):
        print(f"step {i}: ({p[0].item():+.6f}, {p[1].item():+.6f})  f = {rosenbrock(p).item():.3e}")
        p = newton_step(p)
