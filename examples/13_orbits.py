"""Three bodies chase each other along a figure of eight: a simulation in plain NumPy, inverted.

Run it with `python examples/13_orbits.py`. The simulation takes arrays and gives arrays; of nodes
it gives a graph, by whose Jacobian Newton's method finds the velocities that close the orbit.
"""

import numpy as np

import symgrad as sg

PERIOD, STEPS = 6.32591398, 120


def forces(x):
    """Of three bodies of mass 1 upon each other."""
    gaps = x[np.newaxis, :, :] - x[:, np.newaxis, :]
    squares = np.sum(gaps**2, axis=-1) + np.eye(3)
    return np.sum(gaps / squares[:, :, np.newaxis] ** 1.5, axis=1)


def simulate(x, v, steps):
    """Places and velocities after a third of the period, by leapfrog steps of the fourth order."""
    dt = PERIOD / 3 / steps
    root = 2 ** (1 / 3)
    parts = dt / (2 - root) * np.array([1, -root, 1])
    for _ in range(steps):
        for part in parts:
            x = x + part / 2 * v
            v = v + part * forces(x)
            x = x + part / 2 * v
    return x, v


def start(speed):
    """The bodies on a line, the one in the middle twice as fast as the others, against them."""
    far = np.array([0.97000436, -0.24308753])
    x = np.stack([far, -far, np.zeros(2)])
    return x, np.array([[1.0], [1.0], [-2.0]]) * speed


def miss(speed, steps=STEPS // 3):
    """How far each body is from where the next one began: 0 if the three share one path."""
    x, v = start(speed)
    after, _ = simulate(x, v, steps)
    return np.ravel(after - np.stack([x[2], x[0], x[1]]))


def main():
    speed = sg.placeholder("speed", 2)
    gap = miss(speed)
    program = sg.compile([speed], [gap, sg.jacobian(gap, speed)])

    guess = np.array([0.4, 0.5])
    for step in range(12):
        gaps, slopes = program(guess)
        print(f"  step {step:2d}  speed {guess}  the orbit is open by {np.linalg.norm(gaps):.2e}")
        move = np.linalg.lstsq(slopes, gaps, rcond=None)[0]
        guess = guess - move
        if np.linalg.norm(move) < 1e-12:
            break
    print(f"the speed is {guess}, in the literature 0.46620368 0.43236573")
    print(f"on arrays, without symgrad, it is open by {np.linalg.norm(miss(guess)):.2e}")
    return guess, np.linalg.norm(miss(guess))


if __name__ == "__main__":
    main()
