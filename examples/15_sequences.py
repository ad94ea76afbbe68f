"""Two recurrences and their gradients: the likelihood of a hidden Markov model, and Runge-Kutta.

Run it with `python examples/15_sequences.py`. The dice of a casino that cheats now and then (Durbin
et al., Biological Sequence Analysis, 1998) are learned from the rolls alone; then the rates of
Lotka and Volterra's hares and lynxes from where a path ends.
"""

import numpy as np

import symgrad as sg

ROLLS = 1000


def likelihood(rolls, start, moves, dice):
    """The logarithm of the probability of some rolls, by the forward algorithm.

    `start`, `moves` and `dice` are logits; each step is scaled, so that nothing underflows.
    """
    transition, emission = sg.nn.softmax(moves, axis=1), sg.nn.softmax(dice, axis=1)

    def step(carry, seen):
        weights, total = carry
        weights = weights * seen
        scale = sg.sum(weights)
        return ((weights / scale) @ transition, total + sg.log(scale)), None

    seen = sg.take(emission.T, rolls, axis=0)
    (_, total), _ = sg.scan(step, (sg.nn.softmax(start), 0.0), seen)
    return total


def rolls_of(rng, count):
    """Rolls of a fair die and of a loaded one, which are exchanged now and then."""
    loaded, found = False, []
    for _ in range(count):
        loaded ^= rng.random() < (0.1 if loaded else 0.05)
        sides = [0.1] * 5 + [0.5] if loaded else [1 / 6] * 6
        found.append(rng.choice(6, p=sides))
    return np.array(found)


def path(state, rates, steps, dt):
    """Where hares and lynxes are after some steps of the classical method of Runge and Kutta."""

    def slope(y):
        return sg.stack([y[0] * (rates[0] - rates[1] * y[1]), y[1] * (rates[2] * y[0] - rates[3])])

    def step(y, _):
        a = slope(y)
        b = slope(y + dt / 2 * a)
        c = slope(y + dt / 2 * b)
        d = slope(y + dt * c)
        y = y + dt / 6 * (a + 2 * (b + c) + d)
        return y, y

    return sg.scan(step, state, length=steps)[1]


def casino():
    rolls = sg.placeholder("rolls", ("T",), "int64")
    rng = np.random.default_rng(1)
    start, moves = sg.variable("start", np.zeros(2)), sg.variable("moves", 2 * np.eye(2))
    dice = sg.variable("dice", rng.normal(0, 0.3, (2, 6)))
    loss = -likelihood(rolls, start, moves, dice) / ROLLS
    optimizer = sg.optim.Adam([start, moves, dice], lr=0.1)
    step = sg.compile([rolls], loss, updates=optimizer.updates(loss))
    data = rolls_of(rng, ROLLS)
    losses = [float(step(data)) for _ in range(120)]
    sixes = np.sort(np.asarray(sg.nn.softmax(dice.value, axis=1))[:, 5])
    print(f"likelihood a roll {losses[0]:.4f} -> {losses[-1]:.4f}; sixes {sixes.round(2)}")
    return losses, sixes


def lynxes():
    rates = sg.placeholder("rates", (4,))
    ends = path(sg.constant([10.0, 5.0]), rates, 400, 0.01)[-1]
    true = np.array([1.1, 0.4, 0.1, 0.4])
    program = sg.compile([rates], [ends, sg.jacobian(ends, rates)])
    value, slopes = program(true)
    print(f"after 4 years there are {value.round(3)}; by the rates\n{slopes.round(3)}")
    return program, true


if __name__ == "__main__":
    casino()
    lynxes()
