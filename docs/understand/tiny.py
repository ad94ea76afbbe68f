"""symgrad in 400 lines: gradients as graphs, made better by rules, run as NumPy source.

Read it from top to bottom; it needs nothing but NumPy. It has five chapters:

1. Nodes: a computation is written down, and nothing is computed.
2. Ops: each has a shape, a line of NumPy, and its derivative as nodes.
3. The gradient: a walk backwards over the nodes, which makes more nodes.
4. Rules: three of them, until none finds anything to do.
5. Source: one line of NumPy for each node, executed as a function.

At the end a net of two layers is trained. Run this file to see its program and its losses.
"""

import numpy as np

Shape = tuple[int, ...]
Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


# [nodes] ---- 1. Nodes ---------------------------------------------------------------------------
# A node is an op and its operands, which are nodes. It has a shape and no value: values come when
# the program is called. Python's operators make nodes, so that a formula writes itself down.


class Node:
    """A value that will be computed: an op applied to other nodes."""

    def __init__(self, op: "Op", *operands: "Node") -> None:
        self.op, self.operands = op, operands
        self.shape: Shape = op.shape(*[x.shape for x in operands])

    def __add__(self, other: "Node | float") -> "Node":
        return add(self, as_node(other))

    def __sub__(self, other: "Node | float") -> "Node":
        return self + -1.0 * as_node(other)

    def __mul__(self, other: "Node | float") -> "Node":
        return multiply(self, as_node(other))

    def __rmul__(self, other: float) -> "Node":
        return self * other

    def __matmul__(self, other: "Node") -> "Node":
        return matmul(self, other)

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(str(x.op) for x in self.operands)})"


def as_node(value: "Node | Array | float") -> Node:
    """The node itself, or a constant."""
    return value if isinstance(value, Node) else Constant(value)()


def placeholder(name: str, *shape: int) -> Node:
    """An input of the program."""
    return Placeholder(name, shape)()


def broadcast(x: Node, shape: Shape) -> Node:
    """Repeated until it has this shape, as NumPy does."""
    return x if x.shape == shape else Broadcast(shape)(x)


def sum_to(x: Node, shape: Shape = ()) -> Node:
    """The reverse of a broadcast from `shape`: the sum over what was repeated, or over all."""
    if x.shape == shape:
        return x
    padded = (1,) * (len(x.shape) - len(shape)) + shape
    repeated = [i for i, (a, b) in enumerate(zip(x.shape, padded, strict=True)) if a != b]
    return Sum(tuple(repeated), shape)(x)


# [ops] ---- 2. Ops -------------------------------------------------------------------------------
# An op answers three questions. Which shape does the result have? Which text computes it? And:
# if the loss changes by g for each unit of my result, by how much for each unit of my operands?
# That is the op's vjp (vector-Jacobian product). Its answer is made of nodes.


class Op:
    """What a node does with its operands. This base works element by element."""

    text = ""  # the NumPy expression, with {} where the names of the operands go
    to: Shape | None = None  # the shape of the result, if the op decides it
    in_place = False  # whether NumPy can write the result over an operand of the same shape
    is_view = False  # whether the result shares its memory with the operand

    def shape(self, *shapes: Shape) -> Shape:
        """The shape of the result."""
        return np.broadcast_shapes(*shapes) if self.to is None else self.to

    def vjp(self, y: Node, g: Node) -> list[Node]:
        """The cotangent of each operand of y = op(…), given the cotangent g of y."""
        return []

    def __call__(self, *operands: Node) -> Node:
        return Node(self, *operands)

    def __repr__(self) -> str:
        return type(self).__name__


class Placeholder(Op):
    """An input, which has a name."""

    def __init__(self, name: str, shape: Shape) -> None:
        self.text, self.to = name, shape


class Constant(Op):
    """A number or an array that is known now."""

    def __init__(self, value: Array | float) -> None:
        self.value = np.asarray(value, dtype=np.float64)
        self.to = self.value.shape
        self.text = f"np.array({self.value.tolist()})" if self.value.shape else str(value)


class Add(Op):
    """a + b: both operands receive the cotangent."""

    text, in_place = "np.add({}, {})", True

    def vjp(self, y: Node, g: Node) -> list[Node]:
        return [sum_to(g, x.shape) for x in y.operands]


class Multiply(Op):
    """a * b: the product rule."""

    text, in_place = "np.multiply({}, {})", True

    def vjp(self, y: Node, g: Node) -> list[Node]:
        a, b = y.operands
        return [sum_to(g * b, a.shape), sum_to(g * a, b.shape)]


class MatMul(Op):
    """The product of two matrices."""

    text = "np.matmul({}, {})"

    def shape(self, *shapes: Shape) -> Shape:
        (n, inner), (rows, m) = shapes
        if inner != rows:
            raise ValueError(f"matrices of shapes {shapes[0]} and {shapes[1]} have no product")
        return n, m

    def vjp(self, y: Node, g: Node) -> list[Node]:
        a, b = y.operands
        return [g @ transpose(b), transpose(a) @ g]


class Exp(Op):
    """e to the power x: its own derivative, so that the result is used again."""

    text, in_place = "np.exp({})", True

    def vjp(self, y: Node, g: Node) -> list[Node]:
        return [g * y]


class Reciprocal(Op):
    """1 / x, with the derivative -1 / x²."""

    text, in_place = "np.divide(1.0, {})", True

    def vjp(self, y: Node, g: Node) -> list[Node]:
        return [-1.0 * (g * y * y)]


class Relu(Op):
    """max(x, 0). The vjp is the one of textbooks: g times a mask of zeros and ones."""

    text, in_place = "np.maximum({}, 0.0)", True

    def vjp(self, y: Node, g: Node) -> list[Node]:
        return [g * positive(*y.operands)]


class Positive(Op):
    """1 where x > 0, and 0 elsewhere: a mask. It is flat but for a step: no gradient flows."""

    text = "(({} > 0.0) * 1.0)"


class Select(Op):
    """g where x > 0, and 0 elsewhere: the product with a mask, without the product."""

    text = "np.where({} > 0.0, {}, 0.0)"

    def vjp(self, y: Node, g: Node) -> list[Node]:
        x, kept = y.operands
        return [broadcast(as_node(0.0), x.shape), sum_to(select(x, g), kept.shape)]


class Transpose(Op):
    """A matrix with its axes swapped."""

    text, is_view = "{}.T", True

    def shape(self, *shapes: Shape) -> Shape:
        return shapes[0][::-1]

    def vjp(self, y: Node, g: Node) -> list[Node]:
        return [transpose(g)]


class Broadcast(Op):
    """Repeated along axes; the vjp sums over what was repeated."""

    is_view = True

    def __init__(self, shape: Shape) -> None:
        self.to, self.text = shape, f"np.broadcast_to({{}}, {shape})"

    def vjp(self, y: Node, g: Node) -> list[Node]:
        return [sum_to(g, y.operands[0].shape)]


class Sum(Op):
    """The sum over axes; the vjp repeats: each element receives the cotangent of its sum."""

    def __init__(self, axes: tuple[int, ...], shape: Shape) -> None:
        self.to, self.text = shape, f"np.sum({{}}, axis={axes}).reshape({shape})"

    def vjp(self, y: Node, g: Node) -> list[Node]:
        return [broadcast(g, y.operands[0].shape)]


add, multiply, matmul, transpose = Add(), Multiply(), MatMul(), Transpose()
exp, reciprocal, relu, positive, select = Exp(), Reciprocal(), Relu(), Positive(), Select()


# [gradient] ---- 3. The gradient -----------------------------------------------------------------
# Operands come before what is made of them. From the loss back to the inputs, each node has its
# cotangent complete when its turn comes: the sum over all that use it. All of it is nodes again,
# so that a gradient can be differentiated, improved and printed like anything else.


def in_order(outputs: list[Node]) -> list[Node]:
    """All nodes of a graph, operands first."""
    found: dict[int, Node] = {}

    def visit(x: Node) -> None:
        if id(x) not in found:
            for operand in x.operands:
                visit(operand)
            found[id(x)] = x

    for output in outputs:
        visit(output)
    return list(found.values())


def grad(loss: Node, wrt: list[Node]) -> list[Node]:
    """The gradient of a scalar by each of some nodes, as nodes."""
    cotangents: dict[int, Node] = {id(loss): as_node(1.0)}
    for y in reversed(in_order([loss])):
        if id(y) in cotangents:
            parts = y.op.vjp(y, cotangents[id(y)])
            for x, part in zip(y.operands if parts else (), parts, strict=True):
                known = cotangents.get(id(x))
                cotangents[id(x)] = part if known is None else known + part
    return [cotangents.get(id(x), broadcast(as_node(0.0), x.shape)) for x in wrt]


# [rules] ---- 4. Rules ---------------------------------------------------------------------------
# A rule looks at one node, and gives a better one, or None. It need not be clever: it may look one
# step deep, since rules run until none of them acts, and one makes the work of another.


def neutral(x: Node) -> Node | None:
    """1 * a and 0 + a are a; and a constant need not be repeated before it is multiplied."""
    for a, b in (x.operands, x.operands[::-1]) if x.op in (add, multiply) else ():
        if isinstance(a.op, Broadcast) and b.shape == x.shape:
            return x.op(a.operands[0], b)
        if isinstance(a.op, Constant) and b.shape == x.shape:
            if np.all(a.op.value == (1.0 if x.op is multiply else 0.0)):
                return b
    return None


def factors(x: Node) -> Node | None:
    """a + a is 2 * a, and 3 * (2 * a) is 6 * a: constant factors become one."""
    if x.op is add and x.operands[0] is x.operands[1]:
        return 2.0 * x.operands[0]
    if x.op is multiply and x.operands[0].op is multiply:
        (a, b), c = x.operands[0].operands, x.operands[1]
        if isinstance(b.op, Constant) and isinstance(c.op, Constant):
            return a * as_node(b.op.value * c.op.value)
    return None


def mask_multiply(x: Node) -> Node | None:
    """g * (a > 0) is g where a > 0, and 0 elsewhere: the backward of a ReLU, without a product.

    If g is infinite where a is not positive, the product is NaN, and this is the 0 that is meant.
    """
    for g, mask in (x.operands, x.operands[::-1]) if x.op is multiply else ():
        if mask.op is positive:
            return select(mask.operands[0], g)
    return None


def improve(outputs: list[Node], trace: list[str]) -> list[Node]:
    """The same values by fewer nodes: all rules to a fixpoint; nodes that do the same are one."""
    better: dict[int, Node] = {}
    unique: dict[tuple[object, ...], Node] = {}
    fired = len(trace)
    for old in in_order(outputs):
        x = old.op(*[better[id(a)] for a in old.operands])
        for rule in (neutral, factors, mask_multiply):
            found = rule(x)
            if found is not None:
                trace.append(f"{rule.__name__}: {x} became {found}")
                x = found
                break
        better[id(old)] = unique.setdefault((type(x.op), x.op.text, *map(id, x.operands)), x)
    found_outputs = [better[id(x)] for x in outputs]
    return found_outputs if len(trace) == fired else improve(found_outputs, trace)


# [source] ---- 5. Source -------------------------------------------------------------------------
# Each node becomes a line. If an operand is not read again, the result is written over it: then a
# step of training makes few arrays. What Python executes is text that a person can read.


def write(name: str, inputs: list[Node], outputs: list[Node]) -> str:
    """The source of a function from arrays for the inputs to the values of the outputs."""
    nodes = in_order(outputs)
    names: dict[int, str] = {}
    last = {id(a): i for i, x in enumerate(nodes) for a in (x, *x.operands)}
    viewed = {id(a) for x in nodes if x.op.is_view for a in (x, *x.operands)}
    kept = viewed | {id(x) for x in (*inputs, *outputs)}
    lines = [f"def {name}({', '.join(x.op.text for x in inputs)}):"]
    for i, x in enumerate(nodes):
        text = x.op.text.format(*[names[id(a)] for a in x.operands])
        if not x.operands:
            names[id(x)] = text
            continue
        names[id(x)] = f"t{len(lines)}"
        for a in x.operands if x.op.in_place and x.shape else ():
            if a.operands and last[id(a)] == i and a.shape == x.shape and id(a) not in kept:
                names[id(x)] = names[id(a)]
                text = f"{text[:-1]}, out={names[id(a)]})"
                break
        lines.append(f"    {names[id(x)]} = {text}  # {x.op} {x.shape}")
    return "\n".join([*lines, f"    return ({', '.join(names[id(x)] for x in outputs)},)", ""])


class Program:
    """A function of arrays: `source` is what runs, `trace` which rules acted."""

    def __init__(self, inputs: list[Node], outputs: list[Node], name: str = "step") -> None:
        self.trace: list[str] = []
        self.source = write(name, inputs, improve(outputs, self.trace))
        space: dict[str, object] = {"np": np}
        exec(self.source, space)
        self.run = space[name]

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        assert callable(self.run)
        return tuple(np.asarray(x) for x in self.run(*arrays))


# [net] ---- A net of two layers ------------------------------------------------------------------


def main() -> list[float]:
    """Trains the net; prints its program and its losses."""
    x, y = placeholder("x", 32, 8), placeholder("y", 32, 2)
    w1, w2 = placeholder("w1", 8, 16), placeholder("w2", 16, 2)
    error = relu(x @ w1) @ w2 - y
    loss = sum_to(error * error)
    dw1, dw2 = grad(loss, [w1, w2])
    step = Program([x, y, w1, w2], [loss, w1 - 1e-4 * dw1, w2 - 1e-4 * dw2])
    print(step.source, *step.trace, sep="\n")

    rng = np.random.default_rng(0)
    data, wanted, a, b = (rng.standard_normal(i.shape) for i in (x, y, w1, w2))
    losses = []
    for turn in range(200):
        value, a, b = step(data, wanted, a, b)
        losses.append(float(value))
        if turn % 40 == 0 or turn == 199:
            print(f"{turn:4} {value:10.4f}")
    return losses


if __name__ == "__main__":
    main()
