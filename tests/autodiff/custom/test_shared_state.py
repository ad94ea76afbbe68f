"""What a forward over arrays writes where all uses of its function share it."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pytest

import symgrad as sg
from symgrad.autodiff.custom.state import State
from tests.helpers import close, each

AT = np.array([-2.0, 0.0, 3.0])


def leaf():
    return sg.placeholder("x", 3)


class Slots:
    """An object without a dict."""

    __slots__ = ("c",)


class Box:
    """An object with a dict."""


def into_attribute(self, value):
    self.held.c = value


def into_item(self, value):
    self.held["c"] = value


def into_items(self, value):
    self.held[:] = value


def into_nested(self, value):
    self.held["box"][0].c["c"] = value


def into_class(self, value):
    type(self).held = value


def into_class_if_new(self, value):
    type(self).fresh = value


NESTED = {"box": [SimpleNamespace(c={})]}
SHARED = {
    "dict": (into_item, lambda self: self.held["c"], dict),
    "array": (into_items, lambda self: self.held, lambda: np.zeros(3)),
    "array of objects": (into_items, lambda self: self.held, lambda: np.zeros(3, object)),
    "list": (into_items, lambda self: self.held[:], lambda: [0.0] * 3),
    "object": (into_attribute, lambda self: self.held.c, Box),
    "slots": (into_attribute, lambda self: self.held.c, Slots),
    "nested": (into_nested, lambda self: self.held["box"][0].c["c"], lambda: deepcopy(NESTED)),
    "class": (into_class, lambda self: self.held, float),
    "new in class": (into_class_if_new, lambda self: self.fresh, float),
}


def sine(write, read, **more):
    """The sine, whose derivative is written elsewhere by forward, and read there by backward."""

    def forward(self, x):
        write(self, np.cos(x))
        return np.sin(x)

    def backward(self, g):
        return g * read(self)

    return type("Mine", (sg.NumpyFunction,), {"forward": forward, "backward": backward, **more})


def cosine(f, passes):
    """The gradient of the sum of f, alone."""
    x = leaf()
    return sg.compile([x], sg.grad(sg.sum(f(x)), x), passes=passes)


@each("passes", [(), None], ids=["raw", "optimised"])
@each("more", [{}, {"output_types": lambda self, x: x}], ids=["", "stated"])
@each("where", ["instance", "class"])
@each("kind", SHARED)
def test_state_that_uses_share_is_refused_at_every_use(kind, where, more, passes):
    write, read, make = SHARED[kind]
    own = sine(write, read, **more)
    f = own()
    holder = own if where == "class" or "class" in kind else f
    holder.held = make()
    before = repr(State(f).held)
    for _ in range(3):
        name = "fresh" if kind == "new in class" else "held"
        with pytest.raises(sg.KernelError, match=rf"Mine\.forward: it wrote into {name}"):
            cosine(f, passes)(AT)
    assert not hasattr(own, "fresh")
    assert repr(State(f).held) == before, "and it is put back"


def test_a_refused_function_is_refused_in_every_thread():
    f = sine(into_item, lambda self: self.held["c"])()
    f.held = {}

    def use(_):
        try:
            return cosine(f, None)(AT)
        except sg.KernelError:
            return None

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(use, range(32))) == [None] * 32
    assert f.held == {}


@pytest.mark.parametrize("passes", [(), None], ids=["raw", "optimised"])
@pytest.mark.parametrize("static", [False, True])
def test_a_backward_to_which_nothing_was_saved_runs_after_its_forward(static, passes):
    cache = {}
    own = sine(lambda ctx, value: cache.update(c=value), lambda ctx: cache["c"])
    if static:
        own.forward, own.backward = staticmethod(own.forward), staticmethod(own.backward)
    program = cosine(own.apply, passes)
    for at in (AT, 2 * AT, AT):
        close(program(at), np.cos(at))


@pytest.mark.parametrize("batch", [False, True])
def test_every_form_of_forward_is_watched(batch):
    def other(self, x, out=None):
        self.held["c"] = np.cos(x)
        return np.sin(x, out=out)

    name = "batched_forward" if batch else "forward_out"
    f = sine(lambda self, value: setattr(self, "c", value), lambda self: self.c, **{name: other})()
    f.held = {}
    x = leaf()
    y = sg.vmap(f)(sg.reshape(x, (3, 1))) if batch else f(x)
    program = sg.compile(x, y)
    for _ in range(2):
        with pytest.raises(sg.KernelError, match=rf"Mine\.{name}: it wrote into held"):
            program(AT)
    assert f.held == {}


def test_a_forward_that_fails_leaves_what_it_holds_as_it_was():
    def write(self, value):
        self.held["c"] = value
        raise ValueError("no")

    f = sine(write, lambda self: 0)()
    f.held = {"a": 1}
    with pytest.raises(sg.KernelError, match="ValueError: no"):
        f(leaf())
    assert f.held == {"a": 1}


def test_what_is_held_and_only_read_is_no_state():
    f = sine(lambda self, value: setattr(self, "c", value * self.held["c"][0].c), lambda s: s.c)()
    f.held = {"c": [SimpleNamespace(c=np.ones(3)), Box(), {1, 2}, deque([1.0]), float("nan")]}
    f.held["loop"] = f.held
    close(cosine(f, None)(AT), np.cos(AT))
