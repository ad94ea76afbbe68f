"""`sg.optim`: optimisers, whose steps are part of the program.

>>> optimizer = sg.optim.Adam(net, lr=1e-3)
>>> step = sg.compile([x, y], loss, updates=optimizer.updates(loss))
"""

from symgrad.optim.clipping import clip_by_norm, clip_by_value
from symgrad.optim.lbfgs import LBFGS
from symgrad.optim.methods import SGD, Adagrad, Adam, AdamW, RMSprop
from symgrad.optim.optimizer import Optimizer
from symgrad.optim.schedules import constant, cosine, step_decay, warm_up

__all__ = [
    "LBFGS",
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "Optimizer",
    "RMSprop",
    "clip_by_norm",
    "clip_by_value",
    "constant",
    "cosine",
    "step_decay",
    "warm_up",
]
