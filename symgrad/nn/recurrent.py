"""Recurrent cells: what is done at each step of a sequence, with weights that all steps share.

The gates lie side by side along the last axis of the weights. `unroll` runs over a sequence in one
loop, `Bidirectional` in two, and `sample` draws one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from symgrad import random
from symgrad.ir.errors import ShapeError, UnsupportedError
from symgrad.ir.node import Node, as_node
from symgrad.ir.origin import scope
from symgrad.ir.types import as_shape
from symgrad.nn.checks import given
from symgrad.nn.initializers import Initializer, weights
from symgrad.nn.layers import alike
from symgrad.nn.module import Module, parameter
from symgrad.ops.activations import sigmoid
from symgrad.ops.conv.windows import positive
from symgrad.ops.declare import NodeLike, explaining
from symgrad.ops.leaves import arange, zeros
from symgrad.ops.loops.scan import scan
from symgrad.ops.select import where
from symgrad.ops.shape import astype, broadcast_to, concat, permute_dims, reshape
from symgrad.ops.trigonometry import tanh


class _Cell(Module):
    """Weights for so many gates of `size` units."""

    gates: ClassVar[int]
    states: ClassVar[int] = 1
    biases_state: ClassVar[bool] = False

    def __init__(
        self,
        size_in: int,
        size: int,
        *,
        key: NodeLike = None,
        init: Initializer = "xavier_uniform",
        init_state: Initializer = "orthogonal",
        dtype: Any = "float64",
    ) -> None:
        positive(size_in, "size_in"), positive(size, "size")
        first, second = random.split(given(key))
        shape, inner = (size_in, self.gates * size), (size, self.gates * size)
        self.weight = weights(init, first, shape, (size_in, size), dtype)
        self.weight_state = weights(init_state, second, inner, (size, size), dtype)
        self.bias = parameter(np.zeros(self.gates * size, dtype))
        self.size = size
        if self.biases_state:
            self.bias_state = parameter(np.zeros(size, dtype))

    def forward(self, x: NodeLike, state: Any = None) -> Any:
        """The next state, given the one before; without it this is the first step."""
        return self._step(self._entering(x), state)

    def unroll(
        self,
        x: NodeLike,
        state: Any = None,
        *,
        lengths: NodeLike | None = None,
        reverse: bool = False,
        keep: Literal["all", "sqrt"] | int = "all",
    ) -> tuple[Node, Any]:
        """`(outputs, state)` for sequences x of the shape (N, steps, size_in), in one loop.

        The outputs are of the shape (N, steps, size). The state is the last one, as `forward`
        returns it: of the shape (N, size), for `LSTMCell` a pair of them; given back it goes on
        from there. Both N and the number of steps may be named dimensions. `lengths`, N ints, are
        how many steps belong to each sequence: at the others the state stays, and the output is 0.
        With `reverse` the steps are taken from the last to the first. `keep` is that of `sg.scan`.

        >>> cell = GRUCell(3, 5, key=sg.random.key(0))
        >>> outputs, state = cell.unroll(placeholder("x", ("N", "T", 3)))
        >>> outputs.type, state.type
        (float64[N, T, 5], float64[N, 5])
        """
        node = as_node(x)
        if node.ndim != 3:
            raise ShapeError(
                f"sequences are of the shape (N, steps, features), and not {node.type!r}"
            )
        count = None if lengths is None else as_node(lengths)
        if count is not None and (count.shape != node.shape[:1] or count.dtype.kind not in "iu"):
            raise ShapeError(
                f"lengths are {node.shape[0]} ints, one a sequence, not {count.type!r}"
            )
        with scope(self._settled()[0]):
            entering = self._entering(permute_dims(node, (1, 0, 2)))  # one product for all steps
            first = self._zeros(node.shape[0])
            start = first if state is None else self._held(state)
            begin = tuple(broadcast_to(s, first[0].shape) for s in start)

            def step(carry: Any, given: tuple[Node, Node]) -> tuple[Any, Node]:
                row, t = given
                after = self._states(self._step(row, self._form(carry)))
                if count is None:
                    return after, after[0]
                inside = reshape(t < count, (-1, 1))
                held = tuple(where(inside, a, b) for a, b in zip(after, carry, strict=True))
                return held, where(inside, after[0], 0)

            steps = arange(node.shape[1])
            last, outputs = scan(step, begin, (entering, steps), reverse=reverse, keep=keep)
            return permute_dims(outputs, (1, 0, 2)), self._form(last)

    def _entering(self, x: NodeLike) -> Node:
        """The contribution of x to the gates."""
        return alike(x, self.weight) @ self.weight + self.bias

    def _step(self, entering: Node, state: Any) -> Any:
        raise NotImplementedError

    def _zeros(self, *batch: Any) -> tuple[Node, ...]:
        """The first state."""
        shape = (*batch, self.size)
        return (zeros(shape, dtype=self.weight.dtype),) * self.states

    def _form(self, states: Sequence[Node]) -> Any:
        """The state as `forward` returns it."""
        return states[0] if self.states == 1 else tuple(states)

    def _states(self, state: Any) -> tuple[Node, ...]:
        return (state,) if self.states == 1 else tuple(state)

    def _held(self, state: Any) -> tuple[Node, ...]:
        """A state that was given, in the dtype of the weights."""
        if self.states > 1 and (not isinstance(state, (tuple, list)) or len(state) != 2):
            raise ShapeError("the state is a pair: (output, memory), as the cell returns it")
        return tuple(alike(s, self.weight_state) for s in self._states(state))

    def _begun(self, entering: Node, state: Any) -> tuple[Node, ...]:
        return self._zeros(*entering.shape[:-1]) if state is None else self._held(state)

    def _split(self, y: Node) -> list[Node]:
        """The part of each gate."""
        return [y[..., i * self.size : (i + 1) * self.size] for i in range(self.gates)]


class RNNCell(_Cell):
    """tanh(x @ weight + state @ weight_state + bias): Elman, Cognitive Science 14 (1990).

    The state is the output.

    >>> cell = RNNCell(3, 5, key=sg.random.key(0))
    >>> cell.unroll(placeholder("x", ("N", 7, 3)))[0].type
    float64[N, 7, 5]
    """

    gates = 1

    def _step(self, entering: Node, state: Any) -> Node:
        (h,) = self._begun(entering, state)
        return tanh(entering + h @ self.weight_state)


class GRUCell(_Cell):
    """Gated recurrent units: Cho et al., arXiv:1406.1078, with the reset after the product.

    The gates are reset, update and new; `bias_state` is within the reset, as in cuDNN. The state
    is the output.

    >>> GRUCell(3, 5, key=sg.random.key(0))(placeholder("x", ("N", 3))).type
    float64[N, 5]
    """

    gates = 3
    biases_state = True

    def _step(self, entering: Node, state: Any) -> Node:
        (h,) = self._begun(entering, state)
        of_x, of_h = self._split(entering), self._split(h @ self.weight_state)
        reset, update = (sigmoid(a + b) for a, b in zip(of_x[:2], of_h[:2], strict=True))
        new = tanh(of_x[2] + reset * (of_h[2] + self.bias_state))
        return new + update * (h - new)


class LSTMCell(_Cell):
    """Long short-term memory: Hochreiter and Schmidhuber, Neural Computation 9 (1997).

    The gates are input, forget, new and output (Gers et al., 2000); the state is (output, memory).

    >>> output, memory = LSTMCell(3, 5, key=sg.random.key(0))(placeholder("x", ("N", 3)))
    >>> output.type
    float64[N, 5]
    """

    gates = 4
    states = 2

    def _step(self, entering: Node, state: Any) -> tuple[Node, Node]:
        h, memory = self._begun(entering, state)
        enter, forget, new, output = self._split(entering + h @ self.weight_state)
        memory = sigmoid(forget) * memory + sigmoid(enter) * tanh(new)
        return sigmoid(output) * tanh(memory), memory


class Bidirectional(Module):
    """Two cells, of which one reads each sequence from its beginning, the other from its end.

    `(outputs, states)`: the outputs of both side by side, of the shape (N, steps, 2 * size), and
    the pair of their last states. Schuster and Paliwal, IEEE Transactions on Signal Processing 45
    (1997). Options are those of `unroll`.

    >>> k1, k2 = sg.random.split(sg.random.key(0))
    >>> both = Bidirectional(LSTMCell(3, 5, key=k1), LSTMCell(3, 5, key=k2))
    >>> both(placeholder("x", ("N", "T", 3)))[0].type
    float64[N, T, 10]
    """

    def __init__(self, first: _Cell, second: _Cell) -> None:
        for cell in (first, second):
            if not isinstance(cell, _Cell):
                raise UnsupportedError(f"Bidirectional takes two recurrent cells, not {cell!r:.60}")
        self.first, self.second = first, second

    def forward(
        self,
        x: NodeLike,
        states: Any = (None, None),
        *,
        lengths: NodeLike | None = None,
        keep: Literal["all", "sqrt"] | int = "all",
    ) -> Any:
        """Both outputs side by side, and both last states; `states` are those to begin with."""
        if not isinstance(states, (tuple, list)) or len(states) != 2:
            raise ShapeError("the states are a pair, one of each cell")
        there, last = self.first.unroll(x, states[0], lengths=lengths, keep=keep)
        back, first = self.second.unroll(x, states[1], lengths=lengths, reverse=True, keep=keep)
        return concat([there, back], axis=2), (last, first)


@explaining
def sample(
    step: Callable[[Node, Any], tuple[NodeLike, Any]],
    token: NodeLike,
    state: Any,
    length: Any,
    *,
    key: NodeLike,
    temperature: NodeLike = 1.0,
) -> tuple[Node, Any]:
    """`(tokens, state)`: a sequence that a model draws, each token from what it drew before.

    `step(token, state)` gives the logits of the next token, of the shape (N, classes), and the next
    state; `token`, N ints, and `state` are those to begin with. The tokens are of the shape
    (N, length), as int64. A low `temperature` keeps to what is likely. It is one loop.

    >>> logits = placeholder("logits", ("N", 9))
    >>> begin = placeholder("begin", ("N",), "int64")
    >>> sample(lambda t, s: (logits, s), begin, (), 20, key=sg.random.key(0))[0].type
    int64[N, 20]
    """

    def drawn(carry: Any, i: Node) -> tuple[Any, Node]:
        before, inner = carry
        logits, after = step(before, inner)
        found = random.categorical(random.fold_in(key, i), as_node(logits) / temperature)
        return (found, after), found

    (steps,) = as_shape((length,))
    begin = astype(token, "int64")
    (_, last), tokens = scan(drawn, (begin, state), arange(steps))
    return permute_dims(tokens, (1, 0)), last
