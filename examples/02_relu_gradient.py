"""The story of relu's gradient: what is written, what is derived, what runs.

Run it with `python examples/02_relu_gradient.py`. At each stage it prints the graph as text.
"""

import numpy as np

import symgrad as sg


def build() -> tuple[sg.Node, sg.Node, sg.Node]:
    """An input, a loss of it, and the gradient."""
    x = sg.placeholder("x", (5,), "float32")
    loss = sg.sum(3.0 * sg.relu(x))
    return x, loss, sg.grad(loss, x)


def main() -> np.ndarray:
    x, loss, dx = build()
    print(f"1. What is written:\n{sg.Graph([loss])}")
    print(
        "2. Its gradient. The derivative of relu is a mask of 0s and 1s, taken from its output.\n"
        "   A cotangent times a mask is a selection: nothing flows where the mask is 0, not even\n"
        f"   an inf. The cotangent itself is a 1, repeated and multiplied:\n{sg.Graph([dx])}"
    )

    program = sg.compile([x], dx)
    print(f"3. Compiled: the scalar has moved out, mask and selection are one:\n{program.graph}")
    print(f"4. The rules that did it:\n{program.trace}\n")
    print(f"5. What runs:\n{program.source}")

    by_hand = sg.ones_like(x) * 3.0 * sg.astype(sg.relu(x) > 0, "float32")
    fused = sg.compile([x], by_hand, exact="reals")
    print(
        "6. A mask multiplied in by hand. inf * 0 is NaN, so that this is a selection only where\n"
        f"   floats may be taken for real numbers, exact='reals':\n{fused.graph}"
    )
    points = np.array([-3, -1.5, 0, 1.5, 3], "float32")
    print(f"7. The gradient at {points}: {program(points)}")
    return program(points)


if __name__ == "__main__":
    main()
