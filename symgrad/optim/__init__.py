"""`sg.optim`: optimisers, whose steps are part of the program.

>>> optimizer = sg.optim.Adam(net, lr=1e-3)
>>> step = sg.compile([x, y], loss, updates=optimizer.updates(loss))
"""

import typing as _typing

from symgrad.ir.elsewhere import absent as _absent
from symgrad.ir.namespace import public_names as _public_names
from symgrad.optim.clipping import clip_by_norm as clip_by_norm
from symgrad.optim.clipping import clip_by_value as clip_by_value
from symgrad.optim.lbfgs import LBFGS as LBFGS
from symgrad.optim.methods import SGD as SGD
from symgrad.optim.methods import Adagrad as Adagrad
from symgrad.optim.methods import Adam as Adam
from symgrad.optim.methods import AdamW as AdamW
from symgrad.optim.methods import RMSprop as RMSprop
from symgrad.optim.minimize import Minimum as Minimum
from symgrad.optim.minimize import minimize as minimize
from symgrad.optim.optimizer import Optimizer as Optimizer
from symgrad.optim.schedules import constant as constant
from symgrad.optim.schedules import cosine as cosine
from symgrad.optim.schedules import step_decay as step_decay
from symgrad.optim.schedules import warm_up as warm_up

__all__ = _public_names(globals())

if not _typing.TYPE_CHECKING:  # which would take any name for one of these
    __getattr__ = _absent("optim", __all__)
