"""Declaring a rule: what it says of itself, and what is refused."""

import pytest

import symgrad as sg
from symgrad import Attr, Const, Exact, Rewrite, Var
from symgrad.ir.errors import RewriteError
from symgrad.rewrite.rule import rule_for


def test_a_rule_is_a_function():
    @sg.rule(exact="values", kinds="f")
    def gone(x: Var, c: Const) -> Rewrite:
        """The reason.

        And more.
        """
        return Rewrite(before=(x + c) - c, after=x)

    assert (gone.name, gone.exact, gone.kinds) == ("gone", Exact.VALUES, "f")
    assert gone.reason.startswith("The reason.")
    assert [op.name for op in gone.ops] == ["subtract"]
    assert str(gone) == "gone [values]: subtract(add(x, c), c) -> x"


def test_a_commutative_op_matches_in_either_order_unless_ordered():
    @sg.rule(exact="bits")
    def either(x: Var, c: Const) -> Rewrite:
        """Either."""
        return Rewrite(before=c * sg.exp(x), after=x)

    @sg.rule(exact="bits", ordered=True)
    def one(x: Var, c: Const) -> Rewrite:
        """One."""
        return Rewrite(before=c * sg.exp(x), after=x)

    assert (len(either.forms), len(one.forms)) == (2, 1)


def test_a_rule_without_a_reason_is_refused():
    def silent(x: Var) -> Rewrite:
        return Rewrite(before=-x, after=x)

    with pytest.raises(RewriteError, match="silent has no docstring"):
        sg.rule(exact="bits")(silent)
    with pytest.raises(RewriteError, match="docstring"):
        rule_for(lambda op: True, exact="bits")(lambda node: None)


def test_a_parameter_says_what_it_is():
    def untyped(x) -> Rewrite:
        """Why not."""
        return Rewrite(before=-x, after=x)

    def mistyped(x: int) -> Rewrite:
        """Why not."""
        return Rewrite(before=-x, after=x)

    for function in (untyped, mistyped):
        with pytest.raises(RewriteError, match="annotate x as Var, Const or Attr"):
            sg.rule(exact="bits")(function)


def test_a_rule_matches_an_op():
    def anything(x: Var) -> Rewrite:
        """Everything is 0."""
        return Rewrite(before=x, after=0)

    with pytest.raises(RewriteError, match="must match an op, not x"):
        sg.rule(exact="bits")(anything)


@pytest.mark.parametrize("grade", ["fast", "", 7, None])
def test_a_grade_is_one_of_four(grade):
    def kept(x: Var) -> Rewrite:
        """Fine."""
        return Rewrite(before=sg.negative(sg.negative(x)), after=x)

    x = sg.placeholder("x", 3)
    wanted = "exact is one of 'bits', 'values', 'rounding', 'reals'"
    with pytest.raises(RewriteError, match=wanted):
        sg.rule(exact=grade)(kept)
    with pytest.raises(RewriteError, match=wanted):
        sg.compile([x], -x, exact=grade)


def test_grades_are_ordered():
    assert Exact.BITS < Exact.VALUES < Exact.ROUNDING < Exact.REALS
    assert Exact.of("reals") is Exact.of(Exact.REALS) is Exact.REALS


def test_a_rule_for_a_fact_looks_at_the_ops_that_have_it():
    @rule_for(lambda op: op.idempotent, exact="bits")
    def once_is_enough(node):
        """Twice is once."""
        x = node.inputs[0]
        return x if x.op is node.op else None

    names = [op.name for op in once_is_enough.ops]
    assert {"floor", "abs", "relu"} <= {*names}
    assert "exp" not in names
    assert str(once_is_enough) == "once_is_enough [bits]: Twice is once."
    x = sg.placeholder("x", 3)
    program = sg.compile([x], sg.floor(sg.floor(x)), passes=[once_is_enough])
    assert [n.op.name for n in program.graph.nodes] == ["placeholder", "floor"]


def test_attributes_may_be_variables():
    @sg.rule(exact="bits")
    def kept(x: Var, shape: Attr) -> Rewrite:
        """A reshape of exp is exp of a reshape."""
        return Rewrite(
            before=sg.reshape(sg.exp(x), shape=shape), after=sg.exp(sg.reshape(x, shape=shape))
        )

    x = sg.placeholder("x", (2, 3))
    graph = sg.compile([x], sg.reshape(sg.exp(x), (3, 2)), passes=[kept]).graph
    assert [n.op.name for n in graph.nodes] == ["placeholder", "reshape", "exp"]


# ---- refused when declared -------------------------------------------------------------------


def unbound_pattern(x: Var, y: Var) -> Rewrite:
    """Where would y come from?"""
    return Rewrite(before=sg.exp(x), after=sg.exp(x) + y)


def unbound_variable(x: Var, y: Var) -> Rewrite:
    """Where would y come from?"""
    return Rewrite(before=sg.exp(x), after=y)


def unbound_attribute(x: Var, y: Attr) -> Rewrite:
    """Where would y come from?"""
    return Rewrite(before=sg.exp(x), after=sg.reshape(x, shape=y))


def unbound_parameter(x: Var) -> Rewrite:
    """Where would y come from?"""
    return Rewrite(before=sg.exp(x), after=lambda x, y: x)


def bound(x: Var) -> Rewrite:
    """Fine."""
    return Rewrite(before=sg.exp(x), after=lambda x: x)


@pytest.mark.parametrize(
    "function", [unbound_pattern, unbound_variable, unbound_attribute, unbound_parameter]
)
def test_what_stands_instead_uses_what_was_matched(function):
    words = f"the rule {function.__name__}: `after` uses y, which `before` does not bind"
    with pytest.raises(RewriteError, match=words):
        sg.rule(exact="reals")(function)


def test_a_guard_uses_what_was_matched():
    with pytest.raises(RewriteError, match="the rule bound: `when` uses y, z, which"):
        sg.rule(exact="reals", when=lambda y, x, z: True)(bound)
    assert sg.rule(exact="reals", when=lambda x: True)(bound).name == "bound"


def test_a_guard_is_a_plain_function():
    with pytest.raises(RewriteError, match="the rule bound: `when` must be a plain function"):
        sg.rule(exact="reals", when=bool)(bound)


@pytest.mark.parametrize("made", [None, 3, (1, 2)])
def test_a_rule_returns_a_rewrite(made):
    def lost(x: Var):
        """Nothing."""
        return made

    with pytest.raises(RewriteError, match="the rule lost must return a Rewrite, not"):
        sg.rule(exact="bits")(lost)
