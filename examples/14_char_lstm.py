"""A text learned letter by letter: an LSTM over sequences of any length, then what it writes.

The text is PEP 20, the Zen of Python by Tim Peters, which is in the public domain and comes with
Python. Run it with `python examples/14_char_lstm.py`. The steps are one loop in the program, and
so are those of the sample.
"""

import contextlib
import io

import numpy as np

import symgrad as sg
from symgrad import nn

SEED, UNITS, LENGTH = "The ", 96, 48


def zen() -> str:
    with contextlib.redirect_stdout(io.StringIO()):
        import this
    return "".join(this.d.get(c, c) for c in this.s)


class Writer(nn.Module):
    """Logits of the next letter, for each letter of sequences."""

    def __init__(self, letters: int, key: sg.Node) -> None:
        first, second, third = sg.random.split(key, 3)
        self.embedding = nn.Embedding(letters, 32, key=first, dtype="float32")
        self.cell = nn.LSTMCell(32, UNITS, key=second, dtype="float32")
        self.read = nn.Linear(UNITS, letters, key=third, dtype="float32")

    def forward(self, letters: sg.Node) -> sg.Node:
        outputs, _ = self.cell.unroll(self.embedding(letters))
        return self.read(outputs)

    def next(self, letter: sg.Node, state: tuple[sg.Node, sg.Node]) -> tuple:
        output, memory = self.cell(self.embedding(letter), state)
        return self.read(output), (output, memory)


def main(epochs: int = 150) -> tuple[list[float], str]:
    text = zen()
    alphabet = sorted(set(text))
    codes = np.array([alphabet.index(c) for c in text])
    net = Writer(len(alphabet), sg.random.key(0))

    given = sg.placeholder("given", ("N", "T"), "int64")
    wanted = sg.placeholder("wanted", ("N", "T"), "int64")
    loss = nn.cross_entropy(net(given), wanted)
    optimizer = sg.optim.Adam(net, lr=1e-2)
    step = sg.compile([given, wanted], loss, updates=optimizer.updates(loss))

    rng, losses = np.random.default_rng(0), []
    for epoch in range(epochs):
        starts = rng.integers(len(codes) - LENGTH - 1, size=16)
        rows = codes[starts[:, None] + np.arange(LENGTH + 1)]
        losses.append(float(step(rows[:, :-1], rows[:, 1:])))
        if epoch % 25 == 0 or epoch == epochs - 1:
            print(f"epoch {epoch:3d}  bits a letter {losses[-1] / np.log(2):.3f}")

    # What has been said is read, and then the model goes on by itself.
    zeros = sg.zeros((1, UNITS), dtype="float32")
    begin = sg.placeholder("begin", (1, "B"), "int64")
    _, state = net.cell.unroll(net.embedding(begin[:, :-1]), (zeros, zeros))
    letters, _ = nn.sample(
        net.next, begin[:, -1], state, 160, key=sg.random.key(1), temperature=0.4
    )  # fmt: skip
    write = sg.compile([begin], letters)
    seed = np.array([[alphabet.index(c) for c in SEED]])
    said = SEED + "".join(alphabet[i] for i in write(seed)[0])
    print(f"\n{said}")
    return losses, said


if __name__ == "__main__":
    main()
