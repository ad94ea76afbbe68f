"""The same program on a GPU, where there is one, and on the processor where there is none.

Run `python examples/16_on_a_gpu.py` with `symgrad[jax]`. When it was written, no GPU was at hand.
"""

from pathlib import Path
from tempfile import gettempdir
from time import perf_counter

import numpy as np

import symgrad as sg

STEPS = 50


def network():
    """Placeholders, a loss, and what a step of training updates."""
    x, label = sg.placeholder("x", ("N", 64), "float32"), sg.placeholder("label", "N", "int64")
    first, second = sg.random.split(sg.random.key(0), 2)
    net = sg.nn.Sequential(
        sg.nn.Linear(64, 256, key=first, dtype="float32"),
        sg.nn.relu,
        sg.nn.Linear(256, 4, key=second, dtype="float32"),
    )
    logits = net(x)
    loss = sg.nn.cross_entropy(logits, label)
    return [x, label], logits, loss, sg.optim.Adam(net, lr=1e-3).updates(loss)


def data(rng, rows=512):
    """Points, and which of four directions each is nearest to."""
    points = rng.standard_normal((rows, 64), dtype="float32")
    return points, np.argmax(points[:, :4], axis=1)


def trained(step, given):
    """The losses of training, and the seconds of a step once it is compiled."""
    losses = [float(step(*given))]
    start = perf_counter()
    losses += [float(step(*given)) for _ in range(STEPS)]
    return losses, (perf_counter() - start) / STEPS


def report(name, losses, seconds):
    """Print what training has come to."""
    print(f"{name}: loss {losses[0]:.4f} to {losses[-1]:.4f}, {seconds * 1e3:.2f} ms a step")


def main(folder: Path | None = None) -> dict[str, list[float]]:
    given = data(np.random.default_rng(0))
    found = {}
    try:
        device = "gpu"
        inputs, logits, loss, updates = network()
        step = sg.compile(inputs, loss, updates, backend="jax", device=device)
    except sg.GraphError as error:
        print(f"no GPU here, so that it runs on the processor:\n  {error}\n")
        device = "cpu"
        step = sg.compile(inputs, loss, updates, backend="jax", device=device)
    except sg.UnsupportedError as error:
        print(error)
        return found
    losses, seconds = trained(step, given)
    report(f"JAX on {device!r}", losses, seconds)
    found["jax"] = losses

    # The variables are where they were trained; a program that NumPy runs fetches them.
    guess = sg.compile(inputs[:1], sg.argmax(logits, axis=1))
    print(f"right: {np.mean(guess(given[0]) == given[1]):.0%}")

    # A step that fails says why, and leaves them as they were.
    before = [v.value for v in updates]
    try:
        step(given[0], np.full_like(given[1], 9))
    except sg.KernelError as error:
        print(f"refused: {str(error).splitlines()[0]}")
    assert all(np.array_equal(v.value, b) for v, b in zip(updates, before, strict=True))

    path = guess.export(Path(folder or gettempdir(), "guess.stablehlo"))
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} KB for XLA on a cpu, cuda or tpu")

    inputs, _, loss, updates = network()
    found["numpy"], seconds = trained(sg.compile(inputs, loss, updates), given)
    report("NumPy", found["numpy"], seconds)
    return found


if __name__ == "__main__":
    main()
