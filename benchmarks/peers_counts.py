"""How much work do JAX and torch.compile make of the functions in `tests/golden/functions.py`?

    python benchmarks/peers_counts.py

Counts the kernels, the elementary operations and the bytes moved by the loss and its gradients in
the dumps of their own compilers, checks that all compute the same, and writes
`tests/golden/peers.json`. A peer that is not installed is left out, and keeps the counts it has.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable
from importlib.metadata import version
from importlib.util import find_spec
from math import prod
from typing import Any, TypeAlias

import numpy as np
import rounds as r

from tests.golden.functions import FUNCTIONS, Case

Arrays: TypeAlias = list[np.ndarray]
Counts: TypeAlias = dict[str, float]

FILE = r.ROOT / "tests" / "golden" / "peers.json"

HOW = {
    "kernels": "What runs one after the other. JAX: the instructions of the entry computation of "
    "the optimised HLO, a fusion being one. torch: the nodes that inductor's scheduler is left "
    "with, each a loop nest or a call of a library.",
    "operations": "Elementary operations. JAX: the instructions at the entry and inside its "
    "fusions. torch: the aten ops of the FX graphs after inductor's post-grad passes; addmm, fma "
    "and mean are two. A product of matrices, a contraction and a reduction are one each. Not "
    "counted: inputs, constants, tuples, and what only says where elements lie (broadcasts, "
    "reshapes, and transposes that are read through); an operation that is done again in another "
    "kernel counts again where the dump says so, which HLO does and FX does not.",
    "bytes": "Bytes moved: for each kernel what it reads, every operand once, and what it "
    "writes. JAX: from the types of operands and results. torch: inductor's own count_bytes.",
    "xla_bytes, xla_flops": "What XLA says itself: cost_analysis of the compiled program.",
    "calls, call_bytes": "torch: the calls in the code that inductor writes, and their bytes if "
    "each went through its arguments once. One C++ function can hold several loop nests, which "
    "go through memory one after the other, so this is a floor.",
    "torch": "Each figure is the lesser of two spellings: torch.func.grad_and_value compiled "
    "whole, and `backward` of a compiled loss, in two graphs.",
}

# ---- JAX ----------------------------------------------------------------------------------------

INSTRUCTION = re.compile(r"\s+(?:ROOT )?%(\S+) = (\(.*?\)|\S+) ([a-z][\w-]*)\((.*?)\)(.*)")
ARRAY = re.compile(r"([a-z]+)(\d*)\[([\d, ]*)\]")
NO_KERNEL = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}
NO_OPERATION = {*NO_KERNEL, "fusion", "call", "broadcast", "reshape", "transpose", "copy", "iota"}


def jax_functions() -> dict[str, Callable[..., Any]]:
    import jax.numpy as jnp
    from jax.nn import log_softmax, relu, softmax

    def two_layer_net(x: Any, y: Any, w1: Any, w2: Any) -> Any:
        return jnp.sum((relu(x @ w1) @ w2 - y) ** 2)

    def cross_entropy_mlp(
        x: Any, t: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any
    ) -> Any:
        h = relu(relu(x @ w1 + b1) @ w2 + b2)
        return -jnp.sum(t * log_softmax(h @ w3 + b3)) / 64

    def layer_norm(x: Any, g: Any, b: Any, c: Any) -> Any:
        d = x - jnp.mean(x, -1, keepdims=True)
        variance = jnp.mean(d * d, -1, keepdims=True)
        return jnp.sum((d / jnp.sqrt(variance + 1e-5) * g + b) * c)

    def attention(q: Any, k: Any, v: Any, c: Any) -> Any:
        return jnp.sum(softmax(q @ k.T / 64**0.5) @ v * c)

    return {f.__name__: f for f in (two_layer_net, cross_entropy_mlp, layer_norm, attention)}


def count_jax(
    function: Callable[..., Any], wanted: list[int], arrays: Arrays
) -> tuple[Counts, Arrays]:
    import jax

    compiled = jax.jit(jax.value_and_grad(function, wanted)).lower(*arrays).compile()
    loss, gradients = compiled(*arrays)
    own = compiled.cost_analysis()
    counts = {
        **count_hlo(compiled.as_text()),
        "xla_bytes": own["bytes accessed"],
        "xla_flops": own["flops"],
    }
    return counts, [np.asarray(a) for a in (loss, *gradients)]


def count_hlo(text: str) -> Counts:
    """Kernels, operations and bytes of an optimised module."""
    bodies: dict[str, list[tuple[str, str, str, str, str]]] = {}
    entry = name = ""
    for line in text.splitlines():
        if line.startswith(("%", "ENTRY")):
            name = line.removeprefix("ENTRY ").split()[0].lstrip("%")
            bodies[name] = []
            entry = name if line.startswith("ENTRY") else entry
        elif name and (found := INSTRUCTION.match(line)):
            bodies[name].append(found.groups())  # type: ignore[arg-type]
    size = {n: nbytes(t) for n, t, *_ in bodies[entry]}

    def operations(name: str) -> int:
        total = 0
        for _, _, op, _, rest in bodies[name]:
            if op in ("fusion", "call"):
                inner = re.search(r"(?:calls|to_apply)=%([^\s,]+)", rest)
                assert inner is not None, rest
                total += operations(inner[1])
            total += op not in NO_OPERATION
        return total

    kernels = [(n, args) for n, _, op, args, _ in bodies[entry] if op not in NO_KERNEL]
    moved = sum(size[n] + sum(size[x] for x in set(re.findall(r"%([^\s,]+)", args)))
                for n, args in kernels)  # fmt: skip
    return {"kernels": len(kernels), "operations": operations(entry), "bytes": moved}


def nbytes(type_: str) -> int:
    """The size of a type as HLO writes it: f32[64,10]{1,0}, pred[64], or a tuple of such."""
    sizes = {"pred": 1}
    return sum(
        prod(map(int, filter(str.strip, shape.split(",")))) * sizes.get(kind, int(bits or 8) // 8)
        for kind, bits, shape in ARRAY.findall(type_)
    )


# ---- torch --------------------------------------------------------------------------------------

TWO = {"addmm", "fma", "mean"}
NO_ATEN = {"permute", "reshape", "view", "expand", "full", "unsqueeze", "squeeze", "t", "clone"}


def torch_functions() -> dict[str, Callable[..., Any]]:
    import torch
    from torch.nn.functional import log_softmax, relu, softmax

    def two_layer_net(x: Any, y: Any, w1: Any, w2: Any) -> Any:
        return torch.sum((relu(x @ w1) @ w2 - y) ** 2)

    def cross_entropy_mlp(
        x: Any, t: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any
    ) -> Any:
        h = relu(relu(x @ w1 + b1) @ w2 + b2)
        return -torch.sum(t * log_softmax(h @ w3 + b3, -1)) / 64

    def layer_norm(x: Any, g: Any, b: Any, c: Any) -> Any:
        d = x - torch.mean(x, -1, keepdim=True)
        variance = torch.mean(d * d, -1, keepdim=True)
        return torch.sum((d / torch.sqrt(variance + 1e-5) * g + b) * c)

    def attention(q: Any, k: Any, v: Any, c: Any) -> Any:
        return torch.sum(softmax(q @ k.T / 64**0.5, -1) @ v * c)

    return {f.__name__: f for f in (two_layer_net, cross_entropy_mlp, layer_norm, attention)}


def count_torch(
    function: Callable[..., Any], wanted: list[int], arrays: Arrays
) -> tuple[Counts, Arrays]:
    import torch

    inputs = [torch.tensor(a, requires_grad=i in wanted) for i, a in enumerate(arrays)]

    def whole() -> Iterable[Any]:
        plain = [x.detach() for x in inputs]
        both = torch.func.grad_and_value(function, tuple(wanted))
        gradients, loss = torch.compile(both)(*plain)
        return loss, *gradients

    def backward() -> Iterable[Any]:
        loss = torch.compile(function)(*inputs)
        loss.backward()
        return loss, *(inputs[i].grad for i in wanted)

    found = [count_inductor(spelling) for spelling in (whole, backward)]
    agree(found[0][1], found[1][1])
    (first, results), (second, _) = found
    return {k: min(first[k], second[k]) for k in first}, results


def count_inductor(run: Callable[[], Iterable[Any]]) -> tuple[Counts, Arrays]:
    import torch
    from torch._inductor import compile_fx, config, metrics
    from torch._inductor.utils import run_and_get_code

    operations = 0

    def note(graph: Any) -> None:
        nonlocal operations
        names = [n.target.__name__.split(".")[0] for n in graph.nodes if n.op == "call_function"]
        operations += sum(1 + (n in TWO) for n in names if n not in NO_ATEN)

    torch._dynamo.reset()
    metrics.reset()
    compile_fx.inductor_metrics_log.setLevel(logging.INFO)  # or inductor does not count bytes
    with config.patch(post_grad_custom_post_pass=note):
        results, codes = run_and_get_code(run)
    moved = [b for code in codes for b in call_bytes(code)]
    counts: Counts = {
        "kernels": len(metrics.nodes_num_elem),
        "operations": operations,
        "bytes": metrics.num_bytes_accessed,
        "calls": len(moved),
        "call_bytes": sum(moved),
    }
    return counts, [x.detach().numpy() for x in results]


def call_bytes(code: str) -> list[int]:
    """The bytes each call in inductor's code reads and writes: arguments once, `in_out` twice."""
    sizes: dict[str, int] = {}
    pointers = dict(re.findall(r"^(cpp_fused\w*) = .*?void  kernel\((.*?)\)", code, re.M | re.S))
    moved = []
    for line in code.splitlines():
        if made := re.match(r" +(\w+) = empty_strided_cpu\(\(([\d, ]*)\).*torch\.(\w+)\)", line):
            name, shape, dtype = made.groups()
            sizes[name] = nbytes(f"pred[{shape}]" if dtype == "bool" else f"f32[{shape}]")
        elif given := re.match(r" +assert_size_stride\((\w+), \(([\d, ]*)\)", line):
            sizes[given[1]] = nbytes(f"f32[{given[2]}]")
        elif same := re.match(r" +(\w+) = (?:reinterpret_tensor\()?(\w+).*; del", line):
            sizes[same[1]] = sizes[same[2]]
        elif called := re.match(r" +(?:extern_kernels\.)?(\w+)\((.*)\)$", line):
            if called[1].startswith("cpp_fused"):
                twice = ["in_out" in p for p in pointers[called[1]].split(",")]
                names = called[2].split(", ")
                moved.append(sum(sizes[n] << t for n, t in zip(names, twice, strict=True)))
            elif "extern_kernels" in line:
                moved.append(sum(sizes[n] for n in {*re.findall(r"\w+", called[2])} & {*sizes}))
    return moved


# ---- all ----------------------------------------------------------------------------------------

PEERS = {"jax": (jax_functions, count_jax), "torch": (torch_functions, count_torch)}


def agree(found: Arrays, expected: Arrays) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def example(case: Case) -> Arrays:
    rng = np.random.default_rng(0)
    shapes: list[Any] = [x.shape for x in case.inputs]
    return [(rng.standard_normal(s) / 8).astype("float32") for s in shapes]


if __name__ == "__main__":
    cases = {f.__name__: f() for f in FUNCTIONS}
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    versions, counts = kept.get("versions", {}), kept.get("counts", {})
    for peer, (functions, count) in PEERS.items():
        if find_spec(peer) is None:
            print(f"{peer} is not installed: its counts stay as they are")
            continue
        versions[peer] = version(peer)
        for name, function in functions().items():
            case = cases[name]
            arrays = example(case)
            wanted = [i for i, x in enumerate(case.inputs) if x in set(case.wanted)]
            found, results = count(function, wanted, arrays)
            agree(results, case.compile()(*arrays))
            counts.setdefault(name, {})[peer] = found
    sizes = {n: {str(x.name): list(x.shape) for x in c.inputs} for n, c in cases.items()}
    result = {"how": HOW, "versions": versions, "sizes": sizes, "counts": counts}
    FILE.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for name, by_peer in counts.items():
        print(name)
        r.report(by_peer)
