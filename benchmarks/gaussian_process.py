"""Is the likelihood of a Gaussian process, with gradient and Hessian, faster than elsewhere?

    python benchmarks/gaussian_process.py [rounds]

The logarithm of the marginal likelihood of 1,000 points in three dimensions, by the logarithms of
length, height and noise, in float64 on one thread: its value, the value and the gradient, and these
with the Hessian. `symgrad` is its NumPy program, `symgrad native` has machine code where that pays.
The peers are given it twice, as neither way is the faster in all: by a Cholesky factor, as books
have it, and by `solve` and `slogdet`. symgrad makes one program of either. `apart` is the largest
relative difference from symgrad's, with which JAX and PyTorch agree; what PyTensor 3.0.7 makes of
`solve` has a wrong gradient.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import rounds as r

SIZE = 1000
WANTED = ("value", "gradient", "Hessian")
AT = (0.1, 0.2, -1.0)


def data(size: int = SIZE) -> tuple[np.ndarray, np.ndarray]:
    """Points, and what was measured there."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (size, 3))
    return x, np.sin(x.sum(1)) + 0.1 * rng.standard_normal(size)


def covariance(lib: Any, p: Any, x: Any, eye: Any) -> Any:
    squares = lib.sum(x * x, 1)
    apart = squares[:, None] + squares[None, :] - 2 * (x @ x.T)
    alike = lib.exp(2 * p[1] - 0.5 * apart / lib.exp(2 * p[0]))
    return alike + lib.exp(2 * p[2]) * eye


def of_symgrad(
    wanted: str, x: np.ndarray, y: np.ndarray, backend: Any = "numpy"
) -> Callable[[], Any]:
    import symgrad as sg

    p = [sg.placeholder(name, ()) for name in ("length", "height", "noise")]
    points, found = sg.placeholder("x", x.shape), sg.placeholder("y", y.shape)
    k = sg.assume(covariance(sg, p, points, sg.eye(len(y))), "positive_definite")
    loss = 0.5 * found @ sg.linalg.solve(k, found) + 0.5 * sg.linalg.logdet(k)
    outputs: list[Any] = [loss]
    if wanted != "value":
        outputs.append(sg.stack(sg.grad(loss, p)))
    if wanted == "Hessian":
        outputs.append(sg.stack([sg.stack(row) for row in sg.hessian(loss, p)]))
    return partial(sg.compile([*p, points, found], outputs, backend=backend), *AT, x, y)


def of_jax(way: str, wanted: str, x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    from jax.scipy import linalg

    jax.config.update("jax_enable_x64", True)

    def loss(p: Any, x: Any, y: Any) -> Any:
        k = covariance(jnp, p, x, jnp.eye(len(y)))
        if way == "solve":
            return 0.5 * y @ jnp.linalg.solve(k, y) + 0.5 * jnp.linalg.slogdet(k)[1]
        factor = jnp.linalg.cholesky(k)
        away = linalg.solve_triangular(factor, y, lower=True)
        return 0.5 * jnp.sum(away**2) + jnp.sum(jnp.log(jnp.diagonal(factor)))

    def all_three(p: Any, x: Any, y: Any) -> Any:
        def slope(p: Any) -> Any:
            value, first = jax.value_and_grad(loss)(p, x, y)
            return first, (value, first)

        second, (value, first) = jax.jacfwd(slope, has_aux=True)(p)
        return value, first, second

    f = {
        "value": lambda *args: [loss(*args)],
        "gradient": jax.value_and_grad(loss),
        "Hessian": all_three,
    }[wanted]
    run, given = jax.jit(f), [jnp.asarray(a) for a in (AT, x, y)]
    return lambda: jax.block_until_ready(run(*given))


def of_torch(way: str, wanted: str, x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    import torch

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    at, points, found = torch.tensor(AT), torch.tensor(x), torch.tensor(y)
    eye = torch.eye(len(y))

    def loss(p: Any) -> Any:
        k = covariance(torch, p, points, eye)
        if way == "solve":
            return 0.5 * found @ torch.linalg.solve(k, found) + 0.5 * torch.linalg.slogdet(k)[1]
        factor = torch.linalg.cholesky(k)
        away = torch.linalg.solve_triangular(factor, found[:, None], upper=False)
        return 0.5 * torch.sum(away**2) + torch.sum(torch.log(torch.diagonal(factor)))

    def run() -> Any:
        if wanted == "value":
            with torch.no_grad():
                return [loss(at)]
        p = at.clone().requires_grad_()
        value = loss(p)
        (first,) = torch.autograd.grad(value, p, create_graph=wanted == "Hessian")
        results = [value.detach(), first.detach()]
        if wanted == "Hessian":
            rows = [torch.autograd.grad(g, p, retain_graph=True)[0] for g in first]
            results.append(torch.stack(rows))
        return results

    return run


def of_pytensor(way: str, wanted: str, x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    import pytensor
    import pytensor.tensor as pt

    p, points, found = pt.dvector("p"), pt.dmatrix("x"), pt.dvector("y")
    k = covariance(pt, p, points, pt.eye(len(y)))
    if way == "solve":
        loss = 0.5 * found @ pt.linalg.solve(k, found) + 0.5 * pt.linalg.slogdet(k)[1]
    else:
        factor = pt.linalg.cholesky(k)
        away = pt.linalg.solve_triangular(factor, found, lower=True)
        loss = 0.5 * pt.sum(away**2) + pt.sum(pt.log(pt.diagonal(factor)))
    first = pytensor.grad(loss, p)
    outputs = [loss, first][: 1 if wanted == "value" else 2]
    if wanted == "Hessian":
        outputs.append(pt.stack([pytensor.grad(first[i], p) for i in range(3)]))
    return partial(pytensor.function([p, points, found], outputs), np.array(AT), x, y)


PEERS = {"JAX": of_jax, "PyTorch": of_torch, "PyTensor": of_pytensor}
CONTESTANTS: dict[str, Callable[[str, np.ndarray, np.ndarray], Callable[[], Any]]] = {
    "symgrad": of_symgrad,
    "symgrad native": partial(of_symgrad, backend=None),
    **{f"{p} {w}": partial(f, w) for p, f in PEERS.items() for w in ("factor", "solve")},
}


def measured(contestant: str, wanted: str) -> dict[str, float]:
    """The figures of one contestant, with how far its answer is from symgrad's."""
    start = perf_counter()
    run = CONTESTANTS[contestant](wanted, *data())
    found = run()
    built = perf_counter() - start
    expected = found if contestant == "symgrad" else of_symgrad(wanted, *data())()
    pairs = zip(map(np.asarray, found), expected, strict=True)
    apart = max(float(abs(a - b).max() / abs(b).max()) for a, b in pairs)
    times: list[float] = []
    while sum(times) < 0.7 or len(times) < 5:
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return {"ms": 1e3 * float(np.median(times)), "build s": built, "apart": apart + 1e-300}


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in CONTESTANTS:
        print(json.dumps(measured(*sys.argv[1:])))
    else:
        count = int(sys.argv[1]) if sys.argv[1:] else 3
        for wanted in WANTED:
            print(wanted)
            r.report(r.compare(__file__, [*CONTESTANTS], count, wanted))
