"""Programs as ONNX: what they compute of their inputs, with the present values of variables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from symgrad.export.ops import SAME, Ops
from symgrad.export.signatures import Dtype, Signature
from symgrad.ir.dims import Dim, Size
from symgrad.ir.errors import ArgumentError, UnsupportedError
from symgrad.ir.formats.reading import checked_path
from symgrad.ir.formats.writing import whole_file
from symgrad.ir.graph import Graph
from symgrad.ir.leaf_ops import CONSTANT, PLACEHOLDER
from symgrad.ir.node import Node, Variable, describe
from symgrad.passes import DEFAULT, run_passes
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace
from symgrad.runtime.program import Program

OPSET = 21
FORMAT = 10  # of the file, which onnxruntime 1.18 reads
# The first passes, which no rule follows: rules make ops that only some compilers know.
PLAIN = DEFAULT[:3]


def onnx(program: Program, path: str | Path) -> Path:
    """Write what a program computes as ONNX (opset 21), for inference with onnxruntime and others.

    Inputs have the names of placeholders, outputs those of the program, and named dimensions stay
    open. Variables have their present values, and updates are left out. It checks nothing: what
    symgrad refuses when it runs, such as a probability above 1, a number outside of what
    `placeholder(within=…)` declares, or an N of 2 for `x[:3]`, is taken as it is.

    Nodes are of dtypes for which onnxruntime has kernels, between conversions where it lacks them.
    NaN is as it has it: its extrema and their places may pass it over, descending orders begin
    with it, where NumPy's end with it, and a softmax with inf is all NaN.

    Raises `UnsupportedError`, which names the node and its line, for what has no form: draws,
    loops, decompositions, Fourier transforms, complex numbers, Python code of yours; and for what
    would lose digits, such as float64 where there is a kernel of float32 alone. Needs the extra
    `onnx`.

    >>> x = placeholder("x", ("N", 3), "float32")
    >>> sg.export.onnx(compile(x, softmax(x, axis=-1)), "model.onnx").name
    'model.onnx'
    """
    target = checked_path(path)
    if not isinstance(program, Program):
        raise ArgumentError(f"programs of compile are written as ONNX, not {program!r:.60}")
    try:
        import onnx as library
    except ImportError as error:
        raise UnsupportedError(
            f"ONNX cannot be imported: {error}; install it: pip install 'symgrad[onnx]'"
        ) from None
    graph = run_passes(program.outputs_as_written, PLAIN, Exact.BITS, Trace())
    data = _Writer(graph, program.output_names[: len(graph.outputs)], library).model()
    with whole_file(target) as file:
        file.write(data)
    return target


class _Writer(Ops):
    """The nodes of ONNX that compute a graph."""

    def __init__(self, graph: Graph, names: Sequence[str], library: Any) -> None:
        self.graph, self.onnx, self.output_names = graph, library, names
        self.helper, self.arrays = library.helper, library.numpy_helper
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.taken = {str(x.name) for x in graph.inputs}
        self.dtypes: dict[str, Dtype] = {str(x.name): np.dtype(x.dtype) for x in graph.inputs}
        self.signatures: dict[str, Signature] = {}
        self.values: dict[Node, Any] = {}
        self.known: dict[Any, str] = {}
        self.node = graph.outputs[0]

    def model(self) -> bytes:
        """The model as bytes."""
        inputs = [x for x in self.graph.inputs if x.op is PLACEHOLDER]
        for node in self.graph.nodes:
            self.node = node
            self.values[node] = self._value(node)
        outputs, taken = [], set[str]()
        for node, wanted in zip(self.graph.outputs, self.output_names, strict=True):
            name = wanted if wanted not in self.taken else self._name(wanted)
            self.taken.add(name)
            self.nodes.append(self.helper.make_node("Identity", [self.values[node]], [name]))
            outputs.append(self._info(name, node))
            taken.add(name)
        made = self.helper.make_graph(
            self.nodes, "symgrad", [self._info(str(x.name), x) for x in inputs], outputs,
            self.initializers,
        )  # fmt: skip
        model = self.helper.make_model(
            made, opset_imports=[self.helper.make_opsetid("", OPSET)], producer_name="symgrad"
        )
        model.ir_version = FORMAT
        try:
            self.onnx.checker.check_model(model)
        except self.onnx.checker.ValidationError as error:  # such as that a name is empty
            raise UnsupportedError(f"ONNX does not take it: {str(error)[:300]}") from error
        data: bytes = model.SerializeToString()
        return data

    def _info(self, name: str, node: Node) -> Any:
        shape = [s if isinstance(s, int) else str(s) for s in node.shape]
        return self.helper.make_tensor_value_info(name, self._kind(node.dtype), shape)

    def _kind(self, dtype: Any) -> int:
        if dtype.kind == "c" or dtype.itemsize > 8:
            raise self.refused(f"it has no {dtype.name} that runtimes compute with")
        found: int = self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return found

    def _value(self, node: Node) -> Any:
        op = node.op
        if op is PLACEHOLDER:
            self._kind(node.dtype)
            return str(node.name)
        if isinstance(node, Variable):
            return self.array(node.cell.read(str(node.name)))
        if op is CONSTANT:
            return self.array(node.attr("value").array)
        if op.identity:
            names = [self.values[x] for x in node.inputs]
            return names[: len(node.type)] if isinstance(node.type, tuple) else names[0]
        if op.of_several:
            return self.values[node.inputs[0]][node.attr("index")]
        names, attrs = [self.values[x] for x in node.inputs], dict(node.attrs)
        form = getattr(self, op.name, None)
        if form is not None:
            return form(*names, node=node, **attrs)
        word = SAME.get(op.name)
        if word is None or (node.inputs and node.inputs[0].tensor.is_complex):
            raise self.refused("it has no form there")
        return self.emit(word, *names)

    def refused(self, why: str) -> UnsupportedError:
        """The error for what has no form in ONNX."""
        return UnsupportedError(
            f"{describe(self.node)} cannot be written as ONNX: {why}{self.node.origin.description}"
        )

    # ---- values -----------------------------------------------------------------------------

    def _name(self, stem: str) -> str:
        found = next(
            n for i in range(len(self.taken) + 1) if (n := f"{stem}_{i}") not in self.taken
        )
        self.taken.add(found)
        return found

    def emit(self, op: str, *names: str, outputs: int = 1, output: int = 0, **attrs: object) -> str:
        """The name of a result of a node of ONNX, of which `output` says which of its `outputs`.

        Where onnxruntime has no kernel for a dtype, there is another one between two conversions.
        """
        if op not in self.signatures:
            self.signatures[op] = Signature(self.onnx.defs.get_schema(op, OPSET))
        signature, given, found = self.signatures[op], list(names), dict[str, tuple[Dtype, Dtype]]()
        for place, name in enumerate(names):
            variable, dtype = signature.variable(place), self.dtypes[name]
            taken = signature.stand_in(variable, dtype)
            if taken is None:
                to = "int64" if np.dtype("int64") in signature.taken[variable] else "float32"
                raise self.refused(
                    f"onnxruntime computes no {op} of {dtype.name}; convert it, astype(x, {to!r})"
                )
            if taken != dtype:
                given[place] = self.emit("Cast", name, to=taken)
            found[variable] = (taken if taken.kind == "b" else dtype), taken
        variable = signature.outputs[output]
        wanted: Any = attrs.get("to", min(signature.taken[variable], key=str))
        wanted, made_of = found.get(variable, (wanted, wanted))
        attrs = {k: self._kind(v) if isinstance(v, np.dtype) else v for k, v in attrs.items()}
        made = [self._name(op.lower()) for _ in range(outputs)]
        self.nodes.append(self.helper.make_node(op, given, made, **attrs))
        self.dtypes[made[output]] = made_of
        return made[output] if made_of == wanted else self.emit("Cast", made[output], to=wanted)

    def array(self, value: Any) -> str:
        """The name of a constant array."""
        data = np.asarray(value, order="C")
        self._kind(data.dtype)
        key = data.tobytes(), data.dtype.str, data.shape
        if key not in self.known:
            self.known[key] = name = self._name("constant")
            self.initializers.append(self.arrays.from_array(data, name))
            self.dtypes[name] = data.dtype
        return self.known[key]

    def sizes(self, shape: Sequence[Any]) -> str:
        """The name of sizes, of which some may be dimensions with a name, as an array of int64."""
        if not any(isinstance(s, Dim) for s in shape):
            return self.array(np.array(shape, np.int64))
        parts = [self._size(s) if isinstance(s, Dim) else self.array([s]) for s in shape]
        return self.emit("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]

    def _size(self, dim: Dim) -> str:
        """The name of a dimension's size, as an array of one int64."""
        if dim not in self.known:
            self.known[dim] = self._sum(dim)
        return self.known[dim]

    def _sum(self, dim: Dim) -> str:
        for x in self.graph.inputs:
            for axis, size in enumerate(x.shape if x.op is PLACEHOLDER else ()):
                if size == dim:
                    return self.emit("Shape", str(x.name), start=axis, end=axis + 1)
        total = None
        for monomial, factor in dim.terms:
            part = self.array(np.array([factor], np.int64))
            for name, power in monomial:
                for _ in range(power):
                    part = self.emit("Mul", part, self._factor(name))
            total = part if total is None else self.emit("Add", total, part)
        assert total is not None
        return total

    def _factor(self, name: Any) -> str:
        if isinstance(name, str):
            alone: Size = Dim.of(name)
            assert isinstance(alone, Dim)
            if all(alone != s for x in self.graph.inputs for s in x.shape):
                raise self.refused(f"no input shows the size of {name}")
            return self._size(alone)
        parts = [self._size(a) if isinstance(a, Dim) else self.array([a]) for a in name.args]
        if name.divisor:
            return self.emit("Div", parts[0], self.array([name.divisor]))  # of what is not negative
        return self.emit("Min", *parts)
