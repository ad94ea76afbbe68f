"""Names that `sg` has not, and where what they mean is: NumPy's, PyTorch's, JAX's, ours."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import NoReturn

import numpy as np

from symgrad.ir.errors import nearest
from symgrad.ir.numpy_cases import DIRECT
from symgrad.ir.op import REGISTRY
from symgrad.ir.refusals import INSTEAD

# Names of others, where no function of ours says that it is NumPy's.
OTHERS: Mapping[str, str] = MappingProxyType(
    {
        "AdamOptimizer": "sg.optim.Adam",
        "CosineAnnealingLR": "sg.optim.cosine(lr, steps), as the lr of an optimiser",
        "Dense": "sg.nn.Linear(size_in, size_out, key=key)",
        "ExponentialLR": "sg.optim.step_decay(lr, 1, factor=factor), as the lr of an optimiser",
        "GradientDescentOptimizer": "sg.optim.SGD",
        "GradientTape": "nothing: sg.grad(loss, wrt) differentiates any node",
        "Inf": "sg.inf",
        "Input": "sg.placeholder(name, shape, dtype)",
        "LambdaLR": "lr=function of an optimiser: it is given the step, a node",
        "NaN": "sg.nan",
        "Parameter": "sg.variable(name, value), or sg.nn.parameter(value) in a module",
        "Placeholder": "sg.placeholder(name, shape, dtype)",
        "Session": "nothing: a program of sg.compile is called",
        "StepLR": "sg.optim.step_decay(lr, every), as the lr of an optimiser",
        "Symbol": "sg.placeholder(name, shape, dtype)",
        "Tensor": "sg.constant(value); the type of nodes is sg.Node",
        "amax": "sg.max",
        "amin": "sg.min",
        "array": "sg.constant(value), or sg.stack of nodes",
        "asfarray": "sg.asarray(x, dtype='float64')",
        "autograd": "sg.grad(loss, wrt), whose results are nodes",
        "backward": "sg.grad(loss, wrt), whose results are nodes",
        "bmm": "sg.matmul",
        "bool_": "sg.bool",
        "cat": "sg.concat",
        "clip_by_value": "sg.clip(x, low, high)",
        "complex_": "sg.complex128",
        "conjugate": "sg.conj",
        "cuda": "sg.compile(…, backend='jax', device='gpu')",
        "custom_gradient": "a class derived from sg.Function",
        "custom_jvp": "a class derived from sg.Function",
        "custom_vjp": "a class derived from sg.Function",
        "derivative": "sg.grad(y, x)",
        "detach": "sg.stop_gradient(x)",
        "device_put": "nothing: a program takes arrays of NumPy's and of JAX's",
        "differentiate": "sg.grad(y, x)",
        "device": "sg.compile(…, backend='jax', device='gpu')",
        "dmatrix": "sg.placeholder(name, ('N', 'M'))",
        "double": "sg.float64",
        "dprint": "print(sg.Graph([y]))",
        "dscalar": "sg.placeholder(name, ())",
        "dtype": "np.dtype, or the name: 'float32'",
        "dvector": "sg.placeholder(name, 'N')",
        "enable_grad": "nothing: a gradient is made where you ask for one, sg.grad(loss, wrt)",
        "float": "sg.float64",
        "float16": "the name: dtype='float16'",
        "float_": "sg.float64",
        "foreach": "sg.map(function, xs)",
        "fori_loop": "sg.fori(n, body, init)",
        "from_numpy": "sg.constant(value)",
        "functional": "sg.nn.relu(x), sg.nn.mse_loss(y, target): functions lie in sg.nn",
        "function": "sg.compile(inputs, outputs)",
        "get_variable": "sg.variable(name, value)",
        "global_variables_initializer": "nothing: a variable has its value from the start",
        "gradients": "sg.grad(loss, wrt)",
        "identity": "sg.eye(n)",
        "ifelse": "sg.cond(p, f, g)",
        "in1d": "sg.isin",
        "indices": "sg.meshgrid of sg.arange, with indexing='ij'",
        "input": "sg.placeholder(name, shape, dtype)",
        "int": "sg.int64",
        "int_": "sg.int64",
        "jacfwd": "sg.jacobian(output, wrt)",
        "jacrev": "sg.jacobian(output, wrt)",
        "jit": "sg.compile(inputs, outputs)",
        "load": "sg.Graph.load(path), or sg.load_state(path, variables)",
        "lr_scheduler": "sg.optim.cosine(lr, steps) and others, as the lr of an optimiser",
        "manual_seed": "sg.random.key(seed), which you give to what draws",
        "matrix": "sg.placeholder(name, ('N', 'M'))",
        "mm": "sg.matmul",
        "mse": "sg.nn.mse_loss",
        "msort": "sg.sort(x, axis=0)",
        "name_scope": "sg.scope(name)",
        "ndarray": "sg.constant(value); the type of nodes is sg.Node",
        "no_grad": "nothing: no gradient is made unless you ask for one; sg.stop_gradient(x) "
        "stops one",
        "placeholders": "sg.placeholder(name, shape, dtype)",
        "pmap": "sg.compile(..., backend='jax', shard=...)",
        "print": "print(program(array)); program.check tells where a NaN comes from",
        "product": "sg.prod",
        "pure_callback": "a class derived from sg.NumpyFunction",
        "rand": "sg.random.uniform(key, shape)",
        "randn": "sg.random.normal(key, shape)",
        "reduce_max": "sg.max",
        "reduce_mean": "sg.mean",
        "reduce_min": "sg.min",
        "reduce_prod": "sg.prod",
        "reduce_sum": "sg.sum",
        "remat": "sg.checkpoint(f)",
        "rsqrt": "1 / sg.sqrt(x)",
        "save": "graph.save(path), or sg.save_state(path, variables)",
        "scalar": "sg.placeholder(name, ())",
        "seed": "sg.random.key(seed), which you give to what draws",
        "set_flush_denormal": "sg.compile(…, flush_subnormals=True)",
        "shared": "sg.variable(name, value)",
        "switch": "sg.where(condition, a, b)",
        "symbols": "sg.placeholder(name, shape, dtype)",
        "tensor": "sg.constant(value)",
        "train": "sg.fit(step, batches)",
        "trapz": "sg.trapezoid",
        "tri": "sg.tril(sg.ones((n, m)))",
        "unsqueeze": "sg.expand_dims(x, axis=axis)",
        "value_and_gradient": "sg.value_and_grad",
        "vector": "sg.placeholder(name, 'N')",
        "view": "sg.reshape(x, shape)",
    }
)
SPACES = ("nn", "optim", "linalg", "sparse", "random", "special", "stats", "fft", "testing")


def absent(space: str, names: Collection[str]) -> Callable[[str], NoReturn]:
    """The `__getattr__` of a namespace such as `sg.nn`: it says what to write in place of a name.

    Case does not matter, since classes of PyTorch's are functions here: `ReLU` is `sg.nn.relu`.
    """

    def missing(name: str) -> NoReturn:
        said = f"module 'symgrad.{space}' has no attribute {name!r}"
        if not name.startswith("_"):
            spelled = {n.lower(): n for n in names}
            alike = ", ".join(f"sg.{space}.{spelled[n]}" for n in nearest(name.lower(), spelled))
            found = OTHERS.get(name)
            said += f"; write {found}" if found else f"; there is {alike}" if alike else ""
        raise AttributeError(said)

    return missing


def hint(name: str, public: Iterable[str], space: Callable[[str], object]) -> str:
    """The end of a message about `sg.<name>`: what to write in its place; empty if nobody knows.

    `public` are the names that there are; `space` gives a namespace such as `sg.nn` by its name.
    """
    REGISTRY.every()
    numpys = getattr(np, name, None)
    ours = REGISTRY.of_numpy(numpys) if callable(numpys) else None
    found = OTHERS.get(name)
    if found is None and ours is not None:
        found = REGISTRY.qualified_name(ours)
    if found is None and name in REGISTRY.functions:
        found = REGISTRY.qualified_name(name)
    if found is None:
        homes = (s for s in SPACES if callable(vars(space(s)).get(name)))
        found = next((f"sg.{home}.{name}" for home in homes), None)
    if found == f"sg.{name}":  # whoever declares it is told, and no user
        return "; it is declared, but in no list of public names: run python -m tools.public_names"
    if found is not None:
        return f"; write {found}"
    if name in INSTEAD:
        return f": {INSTEAD[name]}"
    if callable(numpys) and numpys in DIRECT:
        return f"; write np.{name}, which works on nodes"
    alike = nearest(name, public)
    return f"; there is {', '.join(f'sg.{n}' for n in alike)}" if alike else ""
