"""How each library is given a loss: the fastest usual way, and what it needs to be waited for.

The words that a loss uses are NumPy's names, with relu, softmax, log_softmax, softplus, gelu,
multi_dot, cho_solve, conv2d and max_pool, each the library's own where it has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import matmul
from typing import Any, Protocol, TypeAlias

Loss: TypeAlias = Callable[..., Any]
Run: TypeAlias = Callable[[], Sequence[Any]]


class Training(Protocol):
    """One step of training, as each library is given it; see `workload.Training`."""

    data: int
    parameters: int

    def loss(self, xp: Any, *inputs: Any) -> Any: ...
    def next(self, xp: Any, state: Sequence[Any], gradients: Sequence[Any]) -> list[Any]: ...
    def torch_loss(self, xp: Any, *inputs: Any) -> Any: ...
    def torch_update(self, parameters: Sequence[Any]) -> Callable[[], None]: ...


class Words:
    """A library's names, with some of them said differently."""

    def __init__(self, library: Any, **own: Any) -> None:
        self.__dict__.update(own)
        self._library = library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)


def gelu(tanh: Any) -> Any:
    """The tanh form, for libraries that have none of their own."""

    def of(x: Any) -> Any:
        return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * (x * x * x))))

    return of


def multi_dot(matrices: Sequence[Any]) -> Any:
    return reduce(matmul, matrices)


# ---- symgrad ------------------------------------------------------------------------------------


def symgrad_words() -> Any:
    import symgrad as sg

    linalg = sg.linalg
    own = {"multi_dot": linalg.multi_dot, "cho_solve": linalg.cho_solve, "float16": "float16"}
    return Words(sg, gelu=gelu(sg.tanh), **own)


def symgrad(
    loss: Loss, arrays: Sequence[Any], wanted: Sequence[int], backend: Any = "numpy"
) -> Run:
    import symgrad as sg

    inputs = [sg.placeholder(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)]
    value = loss(symgrad_words(), *inputs)
    gradients = sg.grad(value, [inputs[i] for i in wanted]) if wanted else ()
    return calls(sg.compile(inputs, [value, *gradients], backend=backend), arrays)


def calls(program: Any, arrays: Sequence[Any]) -> Run:
    """Calls of a program; one that JAX runs is given arrays on its device, and gives such."""
    if program.interface.backend != "jax":
        return lambda: program(*arrays)
    given = [program.device.put(a) for a in arrays]
    return lambda: program.on_device(*given)


def symgrad_step(
    work: Training, arrays: Sequence[Any], backend: Any = "numpy", **options: Any
) -> Run:
    import symgrad as sg

    words = symgrad_words()
    data, start = arrays[: work.data], arrays[work.data :]
    inputs = [sg.placeholder(f"x{i}", a.shape, a.dtype) for i, a in enumerate(data)]
    state = [sg.variable(f"s{i}", a) for i, a in enumerate(start)]
    parameters = state[: work.parameters]
    loss = work.loss(words, *inputs, *parameters)
    new = work.next(words, state, sg.grad(loss, parameters))
    updates = dict(zip(state, new, strict=True))
    program = sg.compile(inputs, [loss], updates=updates, backend=backend, **options)
    return calls(program, data)


# ---- PyTensor -----------------------------------------------------------------------------------


def pytensor_words() -> Any:
    import pytensor.tensor as pt
    from pytensor.tensor.slinalg import cho_solve
    from pytensor.tensor.special import log_softmax, softmax

    return Words(
        pt,
        relu=lambda x: pt.maximum(x, 0),
        astype=pt.cast,
        **{name: name for name in ("uint8", "int32", "float16", "float32")},
        softmax=lambda x, axis=-1: softmax(x, axis=axis),
        log_softmax=lambda x, axis=-1: log_softmax(x, axis=axis),
        gelu=gelu(pt.tanh),
        matrix_transpose=lambda x: pt.swapaxes(x, -1, -2),
        multi_dot=multi_dot,
        cho_solve=lambda factor, y: cho_solve((factor, True), y, b_ndim=1),
        scan=pytensor_scan,
    )


def pytensor_scan(step: Callable[[Any, Any], Any], carry: Any, xs: Any) -> tuple[Any, None]:
    """The last carry of PyTensor's loop."""
    from pytensor import scan

    def inner(row: Any, *state: Any) -> list[Any]:
        return list(step(state, row)[0])

    stacks = scan(inner, sequences=[xs], outputs_info=list(carry), return_updates=False)
    return tuple(stack[-1] for stack in stacks), None


def pytensor_mode(linker: str, dtype: Any) -> Any:
    """How it is compiled; and Python's numbers become floats of the dtype from here on."""
    import pytensor
    from pytensor.compile.mode import Mode, get_default_mode

    pytensor.config.floatX = str(dtype) if "float" in str(dtype) else "float32"
    return get_default_mode() if linker == "auto" else Mode(linker, "fast_run")


def pytensor(loss: Loss, arrays: Sequence[Any], wanted: Sequence[int], linker: str) -> Run:
    import pytensor as pytensor_
    import pytensor.tensor as pt

    mode = pytensor_mode(linker, arrays[0].dtype)
    inputs = [pt.tensor(dtype=a.dtype, shape=a.shape) for a in arrays]
    value = loss(pytensor_words(), *inputs)
    gradients = pytensor_.grad(value, [inputs[i] for i in wanted]) if wanted else ()
    compiled = pytensor_.function(inputs, [value, *gradients], mode=mode, trust_input=True)
    return lambda: compiled(*arrays)


def pytensor_step(work: Training, arrays: Sequence[Any], linker: str) -> Run:
    import pytensor as pytensor_
    import pytensor.tensor as pt

    words, mode = pytensor_words(), pytensor_mode(linker, arrays[0].dtype)
    data, start = arrays[: work.data], arrays[work.data :]
    inputs = [pt.tensor(dtype=a.dtype, shape=a.shape) for a in data]
    state = [pytensor_.shared(a, shape=a.shape) for a in start]
    parameters = state[: work.parameters]
    loss = work.loss(words, *inputs, *parameters)
    new = work.next(words, state, pytensor_.grad(loss, parameters))
    step = pytensor_.function(
        inputs,
        [loss],
        updates=list(zip(state, new, strict=True)),
        mode=mode,
        trust_input=True,
    )
    return lambda: step(*data)


# ---- JAX ----------------------------------------------------------------------------------------


def jax_words() -> Any:
    import jax
    from jax.scipy.linalg import cho_solve

    jax.config.update("jax_enable_x64", True)
    return Words(
        jax.numpy,
        relu=jax.nn.relu,
        sigmoid=jax.nn.sigmoid,
        scan=jax.lax.scan,
        softmax=jax.nn.softmax,
        log_softmax=jax.nn.log_softmax,
        softplus=jax.nn.softplus,
        gelu=jax.nn.gelu,
        multi_dot=jax.numpy.linalg.multi_dot,
        conv2d=lambda x, w, b, padding: (
            b[:, None, None] + jax.lax.conv_general_dilated(x, w, (1, 1), ((padding, padding),) * 2)
        ),
        max_pool=lambda x, n: jax.lax.reduce_window(
            x, -jax.numpy.inf, jax.lax.max, (1, 1, n, n), (1, 1, n, n), "VALID"
        ),
        cho_solve=lambda factor, y: cho_solve((factor, True), y),
    )


def jax(loss: Loss, arrays: Sequence[Any], wanted: Sequence[int]) -> Run:
    import jax as jax_

    words = jax_words()
    if wanted:
        both = jax_.jit(jax_.value_and_grad(lambda *xs: loss(words, *xs), tuple(wanted)))
    else:
        both = jax_.jit(lambda *xs: (loss(words, *xs), ()))
    given = [jax_.numpy.asarray(a) for a in arrays]

    def run() -> Sequence[Any]:
        value, gradients = both(*given)
        return jax_.block_until_ready([value, *gradients])  # type: ignore[no-any-return]

    return run


def jax_step(work: Training, arrays: Sequence[Any]) -> Run:
    import jax as jax_

    words = jax_words()
    data, state = (
        [jax_.numpy.array(a) for a in part] for part in (arrays[: work.data], arrays[work.data :])
    )

    def step(data: Any, state: Any) -> Any:
        loss, gradients = jax_.value_and_grad(lambda p: work.loss(words, *data, *p))(
            state[: work.parameters]
        )
        return loss, work.next(words, state, gradients)

    compiled = jax_.jit(step, donate_argnums=1)

    def run() -> Sequence[Any]:
        nonlocal state
        loss, state = compiled(data, state)
        jax_.block_until_ready((loss, state))
        return [loss]

    return run


# ---- PyTorch ------------------------------------------------------------------------------------


def torch_words() -> Any:
    import torch
    from torch.nn import functional

    return Words(
        torch,
        softmax=partial(functional.softmax, dim=-1),
        log_softmax=partial(functional.log_softmax, dim=-1),
        astype=lambda x, dtype: x.to(dtype),
        flip=lambda x, axis: torch.flip(x, (axis,)),
        softplus=functional.softplus,
        gelu=partial(functional.gelu, approximate="tanh"),
        matrix_transpose=lambda x: x.mT,
        multi_dot=torch.linalg.multi_dot,
        conv2d=functional.conv2d,
        max_pool=functional.max_pool2d,
        cho_solve=lambda factor, y: torch.cholesky_solve(y[:, None], factor)[:, 0],
    )


def torch(loss: Loss, arrays: Sequence[Any], wanted: Sequence[int]) -> Run:
    import torch as torch_

    words = torch_words()
    inputs = [torch_.tensor(a, requires_grad=i in wanted) for i, a in enumerate(arrays)]
    leaves = [inputs[i] for i in wanted]

    def run() -> Sequence[Any]:
        value = loss(words, *inputs)
        return [value.detach(), *(torch_.autograd.grad(value, leaves) if leaves else ())]

    return run


def torch_compiled(loss: Loss, arrays: Sequence[Any], wanted: Sequence[int]) -> Run:
    """Loss and gradients in one graph: up to 20 times faster than `backward` of a compiled loss."""
    import torch as torch_

    words = torch_words()
    inputs = [torch_.tensor(a) for a in arrays]
    of = partial(loss, words)
    if wanted:
        both = torch_.compile(torch_.func.grad_and_value(of, tuple(wanted)))
    else:
        both = torch_.compile(lambda *xs: ((), of(*xs)))

    def run() -> Sequence[Any]:
        gradients, value = both(*inputs)
        return [value, *gradients]

    return run


def torch_step(work: Training, arrays: Sequence[Any]) -> Run:
    import torch as torch_

    words = torch_words()
    data = [torch_.tensor(a) for a in arrays[: work.data]]
    start = arrays[work.data : work.data + work.parameters]
    parameters = [torch_.tensor(a, requires_grad=True) for a in start]
    update = work.torch_update(parameters)

    def run() -> Sequence[Any]:
        for p in parameters:
            p.grad = None
        loss = work.torch_loss(words, *data, *parameters)
        loss.backward()
        update()
        return [loss.detach()]

    return run


def torch_compiled_step(work: Training, arrays: Sequence[Any]) -> Run:
    import torch as torch_

    words = torch_words()
    data = [torch_.tensor(a) for a in arrays[: work.data]]
    state = [torch_.tensor(a) for a in arrays[work.data :]]
    both = torch_.func.grad_and_value(lambda p: work.torch_loss(words, *data, *p))

    @torch_.compile
    def step(state: Any) -> Any:
        gradients, loss = both(state[: work.parameters])
        for old, new in zip(state, work.next(words, state, gradients), strict=True):
            old.copy_(new)
        return loss

    return lambda: [step(state)]


# ---- autograd -----------------------------------------------------------------------------------


def autograd_words() -> Any:
    import autograd.numpy as anp
    from autograd.scipy.linalg import solve_triangular
    from autograd.scipy.special import logsumexp

    def cho_solve(factor: Any, y: Any) -> Any:
        half = solve_triangular(factor, y, lower=True)
        return solve_triangular(factor, half, trans="T", lower=True)

    def log_softmax(x: Any, axis: int = -1) -> Any:
        return x - logsumexp(x, axis=axis, keepdims=True)

    return Words(
        anp,
        relu=lambda x: anp.maximum(x, 0),
        astype=lambda x, dtype: x.astype(dtype),
        softmax=lambda x, axis=-1: anp.exp(log_softmax(x, axis)),
        log_softmax=log_softmax,
        softplus=lambda x: anp.logaddexp(x, 0),
        gelu=gelu(anp.tanh),
        matrix_transpose=lambda x: anp.swapaxes(x, -1, -2),
        multi_dot=multi_dot,
        cho_solve=cho_solve,
        diagonal=partial(anp.diagonal, axis1=-1, axis2=-2),
    )


def autograd(loss: Loss, arrays: Sequence[Any], wanted: Sequence[int]) -> Run:
    from autograd import value_and_grad

    if not wanted:
        raise NotImplementedError
    words = autograd_words()
    both = value_and_grad(lambda *xs: loss(words, *xs), tuple(wanted))

    def run() -> Sequence[Any]:
        value, gradients = both(*arrays)
        return [value, *gradients]

    return run


def autograd_step(work: Training, arrays: Sequence[Any]) -> Run:
    from autograd import value_and_grad

    words = autograd_words()
    data, state = arrays[: work.data], list(arrays[work.data :])
    wanted = tuple(range(work.data, work.data + work.parameters))
    both = value_and_grad(lambda *xs: work.loss(words, *xs), wanted)

    def run() -> Sequence[Any]:
        nonlocal state
        loss, gradients = both(*data, *state[: work.parameters])
        state = work.next(words, state, gradients)
        return [loss]

    return run
