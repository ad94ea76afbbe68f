"""Are sparse Jacobians and Hessians faster than CasADi's, and than dense ones of JAX?

    python benchmarks/sparse_derivatives.py [rounds]

Values of a band of three, a heat equation, a chain of masses, and Rosenbrock's Hessian, in float64.
CasADi (SX) is called as a function, which gives a matrix, and through its buffers, which give the
values alone, as `symgrad values` does, which is machine code; CasADi interprets.
`MB` is what calls need at their highest, results included; `build s` all up to the first result,
once a small problem has been built.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import rounds as r

from benchmarks.contestant import highest_now, settled

# Each with the number of its variables; of Rosenbrock's function the Hessian is wanted.
PROBLEMS = ("band 2000", "heat 1024", "masses 2000", "rosenbrock 1000", "band 100000")
TOO_LARGE = 10_000  # for dense matrices


def sizes(name: str) -> tuple[bool, int, int]:
    """Whether it is a loss, how many variables it has, and the side of a square of them."""
    kind, size = name.split()
    return kind == "rosenbrock", int(size), int(int(size) ** 0.5)


def function(name: str, x: Any, lib: Any, join: Any, grid: Any) -> Any:
    """The function of a vector, by slices; `join` puts vectors in a row, `grid` is a square."""
    match name.split()[0]:
        case "band":
            before, after = join(x[-1:], x[:-1]), join(x[1:], x[:1])
            return lib.sin(x) * before + lib.exp(-(x**2)) * after
        case "heat":
            u = grid(x)
            inner = u[1:-1, 1:-1]
            middle = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner
            return 0.1 * middle + inner**3
        case "masses":
            half = x.shape[0] // 2
            p, v = x[:half], x[half:]
            stretch = join(p, 0 * p[:1]) - join(0 * p[:1], p)
            force = stretch + stretch**3
            return join(v, force[1:] - force[:-1] - 0.1 * v)
    return lib.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def of_symgrad(
    name: str, sparse: bool = True, values: str = ""
) -> tuple[Callable[[np.ndarray], Any], Any]:
    import symgrad as sg

    is_loss, size, side = sizes(name)
    x = sg.placeholder("x", size)
    y = function(
        name, x, sg, lambda *v: sg.concat(v), lambda x: sg.pad(sg.reshape(x, (side, side)), 1)
    )
    y = y if is_loss else sg.reshape(y, (size,))
    derivative = sg.hessian if is_loss else sg.jacobian
    found = derivative(y, x, sparse=sparse)
    if values:
        return sg.compile([x], found.values, backend=values), None
    return sg.compile([x], found), lambda found: found.tocsr()


def values_of_symgrad(name: str) -> tuple[Callable[[np.ndarray], Any], Any]:
    f, _ = of_symgrad(name, values="native")

    def read(values: np.ndarray) -> Any:
        matrix = of_symgrad(name)[0](np.ones(sizes(name)[1]))
        matrix.data[:] = values
        return matrix

    return f, read


def dense_symgrad(name: str) -> tuple[Callable[[np.ndarray], Any], Any]:
    return of_symgrad(name, sparse=False)[0], np.asarray


def of_casadi(name: str) -> tuple[Callable[[np.ndarray], Any], Any]:
    import casadi as ca

    is_loss, size, side = sizes(name)
    x = ca.SX.sym("x", size)

    def grid(x: Any) -> Any:
        padded = ca.SX.zeros(side + 2, side + 2)
        padded[1:-1, 1:-1] = ca.reshape(x, side, side).T
        return padded

    class Words:
        sin, exp, sum = ca.sin, ca.exp, ca.sum1

    y = function(name, x, Words, ca.vertcat, grid)
    if name.startswith("heat"):
        y = ca.reshape(y.T, size, 1)
    return ca.Function("f", [x], [ca.hessian(y, x)[0] if is_loss else ca.jacobian(y, x)]), (
        lambda found: found.sparse().tocsr()
    )


def buffered_casadi(name: str) -> tuple[Callable[[np.ndarray], Any], Any]:
    import casadi as ca
    import scipy.sparse

    f, _ = of_casadi(name)
    pattern = f.sparsity_out(0)
    found = np.empty(pattern.nnz())
    given = np.empty(sizes(name)[1])
    buffer, trigger = f.buffer()
    buffer.set_arg(0, memoryview(given))
    buffer.set_res(0, memoryview(found))

    def run(x: np.ndarray, held: Any = (f, buffer)) -> np.ndarray:
        given[:] = x
        trigger()
        return found.copy()

    def read(values: np.ndarray) -> Any:
        rows, columns = ca.DM(pattern, 1).sparsity().get_triplet()
        return scipy.sparse.coo_array((values, (rows, columns)), shape=pattern.shape).tocsr()

    return run, read


def of_jax(name: str) -> tuple[Callable[[np.ndarray], Any], Any]:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    is_loss, size, side = sizes(name)

    def f(x: Any) -> Any:
        y = function(
            name, x, jnp, lambda *v: jnp.concatenate(v), lambda x: jnp.pad(x.reshape(side, side), 1)
        )
        return y if is_loss else y.reshape(size)

    derivative = jax.jit(jax.hessian(f) if is_loss else jax.jacfwd(f))
    return lambda x: derivative(x).block_until_ready(), np.asarray


CONTESTANTS = {
    "symgrad": of_symgrad,
    "symgrad values": values_of_symgrad,
    "CasADi": of_casadi,
    "CasADi buffers": buffered_casadi,
    "JAX dense": of_jax,
    "symgrad dense": dense_symgrad,
}


def measured(contestant: str, name: str) -> dict[str, float]:
    """The figures of one contestant, whose answer is held to symgrad's."""
    at = np.random.default_rng(0).uniform(0.2, 1.2, sizes(name)[1])
    CONTESTANTS[contestant]("rosenbrock 10")[0](at[:10])  # what is imported
    start = perf_counter()
    run, read = CONTESTANTS[contestant](name)
    found = run(at)
    built = perf_counter() - start
    if contestant != "symgrad":
        wanted = of_symgrad(name)[0](at).tocsr()
        wanted = wanted.toarray() if "dense" in contestant else wanted
        off = abs(read(found) - wanted).max()
        assert off < 1e-9, off
        del wanted
    del found
    resident, times = settled(), []
    while sum(times) < 0.7 or len(times) < 5:
        start = perf_counter()
        run(at)
        times.append(perf_counter() - start)
    most = (highest_now() - resident) / 1e6
    return {"ms": 1e3 * float(np.median(times)), "MB": most, "build s": built}


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in CONTESTANTS:
        print(json.dumps(measured(*sys.argv[1:])))
    else:
        count = int(sys.argv[1]) if sys.argv[1:] else 5
        for name in PROBLEMS:
            print(name)
            there = [c for c in CONTESTANTS if sizes(name)[1] < TOO_LARGE or "dense" not in c]
            r.report(r.compare(__file__, there, count, name))
