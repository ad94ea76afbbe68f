"""Modules as estimators of scikit-learn, for its pipelines, searches and scores.

It imports scikit-learn, and so is imported by name:

>>> from sklearn.model_selection import GridSearchCV  # doctest: +SKIP
>>> from symgrad.sklearn import Classifier  # doctest: +SKIP
>>> search = GridSearchCV(Classifier(), {"hidden": [8, 32]}).fit(X, Y)  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from symgrad.compiler import compile
from symgrad.ir.errors import UnsupportedError
from symgrad.ir.node import Node
from symgrad.nn.layers import Linear, Sequential
from symgrad.nn.losses import cross_entropy, mse_loss
from symgrad.nn.module import Module
from symgrad.ops.activations import softmax
from symgrad.ops.leaves import placeholder
from symgrad.ops.select import relu
from symgrad.optim.methods import Adam
from symgrad.random import key, split
from symgrad.train.batches import batches
from symgrad.train.loop import fit

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise UnsupportedError(
        f"symgrad.sklearn needs scikit-learn 1.6 or later ({error}): pip install scikit-learn"
    ) from error

# From the numbers of features and of outputs, and a key, to a net of (N, features) rows.
Build = Callable[[int, int, Node], Module]


class _Estimator(BaseEstimator):
    def __init__(
        self,
        module: Build | None = None,
        *,
        hidden: int = 32,
        learning_rate: float = 0.01,
        epochs: int = 100,
        batch_size: int = 32,
        random_state: Any = 0,
    ) -> None:
        self.module, self.hidden = module, hidden
        self.learning_rate, self.epochs, self.batch_size = learning_rate, epochs, batch_size
        self.random_state = random_state

    def _trained(
        self, x: Any, y: Any, count: int, loss: Callable[..., Node], shown: Callable[[Node], Node]
    ) -> Self:
        """Itself, with a net of so many outputs that has learnt to give y for the rows x."""
        first, second = split(key(int(check_random_state(self.random_state).randint(2**31 - 1))))
        build = self._perceptron if self.module is None else self.module
        self.net_ = build(x.shape[1], count, first)
        dtype = self.net_.parameters()[0].dtype
        rows = placeholder("x", ("N", x.shape[1]), dtype)
        y = y if y.dtype.kind == "i" else y.astype(dtype)
        targets = placeholder("y", ("N", *y.shape[1:]), y.dtype)
        cost = loss(self.net_.train()(rows), targets)
        optimizer = Adam(self.net_.parameters(), self.learning_rate)
        step = compile([rows, targets], cost, optimizer.updates(cost))
        data = batches(x.astype(dtype), y, size=self.batch_size, key=second)
        self.history_ = fit(step, data, epochs=self.epochs, progress=False)
        self.program_ = compile(rows, shown(self.net_.eval()(rows)))
        return self

    def _perceptron(self, features: int, outputs: int, seed: Node) -> Module:
        first, second = split(seed)
        hidden = Linear(features, self.hidden, key=first)
        return Sequential(hidden, relu, Linear(self.hidden, outputs, key=second))

    def _run(self, x: Any) -> Any:
        check_is_fitted(self)
        x = validate_data(self, x, reset=False, dtype=np.float64)
        return self.program_(x.astype(self.program_.feeder.inputs[0].dtype))


class Classifier(ClassifierMixin, _Estimator):
    """A net that tells classes apart, trained by `Adam` on the cross entropy.

    `module` makes it, from the numbers of features and of classes and a key: a function
    `(features, classes, key) -> Module` of rows to logits; None is two layers with `hidden` units
    between them. `fit` leaves `classes_`, `net_`, `program_`, which gives probabilities, and
    `history_`. A pickle takes along what a module is made of, if that can be pickled. Raises what
    scikit-learn's estimators do: `ValueError` for data that do not fit.

    >>> net = Classifier(hidden=8, epochs=20)  # doctest: +SKIP
    >>> net.fit(X, labels).predict(X[:2])  # doctest: +SKIP
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Itself, trained anew on rows and their classes."""
        x, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        return self._trained(x, labels, len(self.classes_), cross_entropy, softmax)

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, in the order of `classes_`."""
        return self._run(X)

    def predict(self, X: Any) -> Any:
        """The most probable class of each row."""
        found = self._run(X)
        return self.classes_[np.argmax(found, axis=1)]


class Regressor(RegressorMixin, _Estimator):
    """A net that gives numbers, trained by `Adam` on the mean of squared errors.

    `module` is as for `Classifier`, of as many outputs as the targets have columns.

    >>> Regressor(hidden=8).fit(X, Y).score(X, Y)  # doctest: +SKIP
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Itself, trained anew on rows and their targets, a number or several for each."""
        x, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        self._flat = y.ndim == 1
        targets = y.astype(np.float64).reshape(len(y), -1)
        return self._trained(x, targets, targets.shape[1], mse_loss, lambda found: found)

    def predict(self, X: Any) -> Any:
        """The targets of each row, in the form of those that it was fitted to."""
        found = self._run(X)
        return found[:, 0] if self._flat else found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


__all__: Sequence[str] = ("Classifier", "Regressor")
