"""Slopes of PyTorch and JAX at kinks: `python tools/kinks_peers.py`, where both are installed.

It writes their answers and versions into `kinks_peers.json`, from which `tools.kinks_table` makes a
table. The functions are those of Kakade and Lee, Provably correct automatic subdifferentiation for
qualified programs, 2018, and their kin: a text, and the slopes of the function at 0 from the left
and from the right.
"""

import json
from importlib import import_module
from pathlib import Path

RECORDED = Path(__file__).with_name("kinks_peers.json")
FUNCTIONS = {
    "x": (1, 1),
    "relu(x) - relu(-x)": (1, 1),
    "10 * x - 9 * (relu(x) - relu(-x))": (1, 1),
    "clip(x, 0, None) + clip(x, None, 0)": (1, 1),
    "maximum(x, 0) + minimum(x, 0)": (1, 1),
    "sign(x) * abs(x)": (1, 1),
    "where(x > 0, x + 1, 0) - where(x > 0, 1, -x)": (1, 1),
    "relu(relu(x) + 1) - relu(-x)": (1, 1),
    "abs(x) + x - 2 * relu(x)": (0, 0),
    "relu(x)": (0, 1),
    "-minimum(-x, 0)": (0, 1),
    "relu(x) - 0.1 * relu(-x)": (0.1, 1),
    "maximum(x, 2 * x)": (1, 2),
    "relu(x) + relu(-x)": (-1, 1),
    "sign(x) * x": (-1, 1),
    "sqrt(x * x)": (-1, 1),
    "abs(abs(x) - relu(x))": (-1, 0),
    "relu(relu(x) - relu(-x))": (0, 1),
    "max(stack([x, -2 * x, 3 * x]))": (-2, 3),
    "sort(stack([x, -2 * x]))[1]": (-2, 1),
    "vector_norm(stack([3 * x, 4 * x]))": (-5, 5),
}


def pytorch():
    """The slope of a function at 0, given its text."""
    torch = import_module("torch")

    def both(function):
        return lambda a, b: function(*map(torch.as_tensor, (a, b)))

    names = {
        **{n: getattr(torch, n) for n in ("relu", "abs", "sign", "sqrt", "clip", "where", "stack")},
        "maximum": both(torch.maximum),
        "minimum": both(torch.minimum),
        "max": torch.max,
        "vector_norm": torch.linalg.vector_norm,
        "sort": lambda x: torch.sort(x).values,
    }

    def slope(text):
        x = torch.tensor(0.0, dtype=torch.float64, requires_grad=True)
        eval(text, {**names, "x": x}).backward()
        return x.grad.item()

    return torch.__version__.split("+")[0], slope


def jax():
    """The slope of a function at 0, given its text."""
    jax = import_module("jax")
    jnp = import_module("jax.numpy")
    listed = ["abs", "sign", "sqrt", "clip", "where", "stack", "maximum", "minimum", "max", "sort"]
    names = {n: getattr(jnp, n) for n in listed}
    names |= {"relu": jax.nn.relu, "vector_norm": jnp.linalg.norm}
    return jax.__version__, lambda text: float(
        jax.grad(lambda x: eval(text, {**names, "x": x}))(0.0)
    )


def main():
    """Run the functions, and record what they give; NaN as a text, for JSON has none."""
    found = {}
    for name, system in (("PyTorch", pytorch), ("JAX", jax)):
        version, slope = system()
        found[f"{name} {version}"] = {
            text: s if s == s else "NaN" for text in FUNCTIONS for s in [slope(text)]
        }
    RECORDED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
