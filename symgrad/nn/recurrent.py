"""Recurrent cells: what is done at each step of a sequence, with weights that all steps share.

The gates lie side by side along the last axis of the weights. `unroll` builds a step for each
element of a sequence, whose length must be known.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from symgrad import random
from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.origin import scope
from symgrad.nn.checks import given
from symgrad.nn.initializers import Initializer, weights
from symgrad.nn.layers import alike
from symgrad.nn.module import Module, parameter
from symgrad.ops.activations import sigmoid
from symgrad.ops.conv.windows import positive
from symgrad.ops.declare import NodeLike
from symgrad.ops.leaves import zeros
from symgrad.ops.shape import stack
from symgrad.ops.trigonometry import tanh


class _Cell(Module):
    """Weights for so many gates of `size` units."""

    gates: ClassVar[int]
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

    def unroll(self, x: NodeLike, state: Any = None) -> tuple[Node, Any]:
        """`(outputs, state)` for sequences x of the shape (N, steps, size_in).

        The outputs are of the shape (N, steps, size). The state is the last one, as `forward`
        returns it: of the shape (N, size), for `LSTMCell` a pair of them; given back it goes on
        from there. Raises `ShapeError` if the number of steps is a named dimension.

        >>> cell = GRUCell(3, 5, key=sg.random.key(0))
        >>> outputs, state = cell.unroll(placeholder("x", ("N", 7, 3)))
        >>> outputs.type, state.type
        (float64[N, 7, 5], float64[N, 5])
        """
        node = as_node(x)
        if node.ndim != 3 or not isinstance(node.shape[1], int) or not node.shape[1]:
            raise ShapeError(
                f"sequences are of the shape (N, steps, features), with a number of steps, and not "
                f"{node.type!r}; each step is a part of the graph"
            )
        with scope(self._settled()[0]):
            entering = self._entering(node)  # one product for all steps
            outputs = []
            for i in range(node.shape[1]):
                state = self._step(entering[:, i], state)
                outputs.append(state[0] if isinstance(state, tuple) else state)
            return stack(outputs, axis=1), state

    def _entering(self, x: NodeLike) -> Node:
        """The contribution of x to the gates."""
        return alike(x, self.weight) @ self.weight + self.bias

    def _step(self, entering: Node, state: Any) -> Any:
        raise NotImplementedError

    def _zeros(self, entering: Node) -> Node:
        """The first state."""
        return zeros((*entering.shape[:-1], self.size), dtype=self.weight.dtype)

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
        h = self._zeros(entering) if state is None else alike(state, self.weight_state)
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
        h = self._zeros(entering) if state is None else alike(state, self.weight_state)
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

    def _step(self, entering: Node, state: Any) -> tuple[Node, Node]:
        first = self._zeros(entering)
        if state is not None and (not isinstance(state, (tuple, list)) or len(state) != 2):
            raise ShapeError("the state is a pair: (output, memory), as the cell returns it")
        given = (first, first) if state is None else state
        h, memory = (alike(s, self.weight_state) for s in given)
        enter, forget, new, output = self._split(entering + h @ self.weight_state)
        memory = sigmoid(forget) * memory + sigmoid(enter) * tanh(new)
        return sigmoid(output) * tanh(memory), memory
