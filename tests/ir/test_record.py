"""Records: fields by place or by name, defaults, what is refused."""

import copy
import inspect

import pytest

from symgrad.ir.record import Record, fresh, replace


class Base(Record, frozen=True):
    x: int
    several: list[int] = fresh(factory=list)


class More(Base, frozen=True, kw_only=True):
    y: int
    z: int = 3


class Free(Record):
    x: int = 0


def test_fields_are_given_by_place_or_by_name():
    one, other = Base(1), Base(x=1)
    assert (one.x, one.several) == (1, [])
    assert one.several is not other.several
    assert one != other
    more = More(1, [2], y=4)
    assert repr(more) == "More(x=1, several=[2], y=4, z=3)"
    assert repr(replace(more, y=5, z=6)) == "More(x=1, several=[2], y=5, z=6)"
    assert copy.copy(more).several is more.several
    assert [*inspect.signature(More).parameters] == ["x", "several", "y", "z"]
    assert str(inspect.signature(Free)) == "(x=0)"


def test_what_is_no_field_or_changes_one_is_refused():
    for wrong in (
        lambda: Base(), lambda: Base(1, x=1), lambda: Base(1, [], 3), lambda: Base(1, y=2),
        lambda: More(1, [], 4), lambda: replace(Base(1), y=2),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="takes its fields, each once"):
            wrong()
    with pytest.raises(AttributeError, match=r"x of a More stays; replace\(\)"):
        More(1, y=2).x = 3
    with pytest.raises(AttributeError, match="stays"):
        del Base(1).x
    free = Free()
    free.x = 2
    assert (free.x, Free().x) == (2, 0)
