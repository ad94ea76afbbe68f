"""Writes reference.json: what torch.optim does in 20 steps, in float64.

`python tests/optim/make_reference.py`, where PyTorch is installed. The model is a small net with
two parameters and a bias, the loss the mean of squares; each case starts from the same values.
"""

import json
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch.optim import SGD, Adagrad, Adam, AdamW, RMSprop
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, StepLR

STEPS = 20
CASES = {
    "SGD": (SGD, {"lr": 0.1}),
    "SGD weight_decay": (SGD, {"lr": 0.1, "weight_decay": 0.05}),
    "SGD momentum": (SGD, {"lr": 0.05, "momentum": 0.9}),
    "SGD nesterov": (SGD, {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "Adam": (Adam, {"lr": 0.05}),
    "Adam betas": (Adam, {"lr": 0.02, "betas": (0.7, 0.9), "eps": 1e-4, "weight_decay": 0.1}),
    "AdamW": (AdamW, {"lr": 0.05}),
    "AdamW weight_decay": (AdamW, {"lr": 0.05, "weight_decay": 0.2}),
    "RMSprop": (RMSprop, {"lr": 0.01}),
    "RMSprop centered": (
        RMSprop,
        {"lr": 0.01, "alpha": 0.9, "centered": True, "momentum": 0.5, "weight_decay": 0.1},
    ),
    "Adagrad": (Adagrad, {"lr": 0.1}),
    "Adagrad lr_decay": (Adagrad, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}),
    "LBFGS": (torch.optim.LBFGS, {"lr": 0.5, "history_size": 10}),
    "LBFGS history": (torch.optim.LBFGS, {"lr": 1.0, "history_size": 3}),
}
SCHEDULES = {
    "cosine": partial(CosineAnnealingLR, T_max=20, eta_min=0.01),
    "step": partial(StepLR, step_size=4, gamma=0.5),
    "warm_up": partial(LambdaLR, lr_lambda=lambda t: min((t + 1) / 5, 1)),
}
CLIPS = {
    "clip_norm": partial(torch.nn.utils.clip_grad_norm_, max_norm=0.5),
    "clip_value": partial(torch.nn.utils.clip_grad_value_, clip_value=0.1),
}


def start():
    """The data and the first values of the parameters."""
    rng = np.random.default_rng(0)
    shapes = {"x": (8, 3), "y": (8, 2), "w": (3, 4), "b": (4,), "v": (4, 2)}
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def run(make, options, schedule=None, clip=None):
    """The loss at each step, and the parameters after them."""
    given = {name: torch.tensor(a) for name, a in start().items()}
    x, y, *parameters = given.values()
    for p in parameters:
        p.requires_grad_()
    w, b, v = parameters
    if make is torch.optim.LBFGS:
        options = {**options, "max_iter": 1, "line_search_fn": None}
    optimizer = make(parameters, **options)
    scheduler = schedule(optimizer) if schedule else None

    def closure():
        optimizer.zero_grad()
        loss = ((torch.tanh(x @ w + b) @ v - y) ** 2).mean()
        loss.backward()
        if clip:
            clip(parameters)
        return loss

    losses = []
    for _ in range(STEPS):
        losses.append(optimizer.step(closure).item())
        if scheduler:
            scheduler.step()
    return {"losses": losses, "after": [p.detach().numpy().tolist() for p in parameters]}


def main():
    cases = {
        name: {"optimizer": make.__name__, "options": options, **run(make, options)}
        for name, (make, options) in CASES.items()
    }
    for name, schedule in SCHEDULES.items():
        cases[name] = run(SGD, {"lr": 0.3, "momentum": 0.5}, schedule=schedule)
    for name, clip in CLIPS.items():
        cases[name] = run(SGD, {"lr": 0.3, "momentum": 0.5}, clip=clip)
    made = f"{Path(__file__).name}, with torch {torch.__version__}"
    start_of = {name: a.tolist() for name, a in start().items()}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items())
    head = f'"made": {json.dumps(made)},\n "start": {json.dumps(start_of)}'
    text = f'{{{head},\n "cases": {{\n{lines}\n}}}}\n'
    Path(__file__).with_name("reference.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
