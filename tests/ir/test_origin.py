import threading

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.origin import MOST_FRAMES, Maker, Origin, Resolver, built_as, current_origin, scope


def test_of_many_makers_the_gradient_rule_is_told_first():
    before, after = ([Maker("rewrite", name) for name in names] for names in ("ab", "cdef"))
    rule = Maker("vjp", "relu")
    told = {
        "a, b, vjp(relu)": [*before, rule],
        "vjp(relu), c": [*before, rule, *after[:1]],
        "vjp(relu), …, e, f": [*before, rule, *after],
        "c, …, e, f": after,
    }
    for text, makers in told.items():
        assert Origin(made_by=tuple(makers)).few_makers() == text


def nearest(node):
    return node.origin.locations[0]


def test_the_line_and_the_expression_are_the_users():
    x = sg.placeholder("x", 3)
    λ = x * 2
    y = sg.tanh(x) + 1; z = λ - y  # noqa: E702  # fmt: skip
    assert nearest(x).text == 'sg.placeholder("x", 3)'
    assert nearest(y).text == "sg.tanh(x) + 1"
    assert nearest(z).text == "λ - y"
    assert nearest(y.inputs[0]).text == "sg.tanh(x)"
    assert nearest(y).file == __file__
    assert nearest(z).line == nearest(y).line == nearest(x).line + 2
    assert str(nearest(x)) == str(x.origin) == f"test_origin.py:{nearest(x).line}"


def test_a_call_over_several_lines_is_shown_by_its_first():
    x = sg.placeholder(
        "x",
        3,
    )
    assert nearest(x).text == "x = sg.placeholder("


def test_inside_a_composite_and_numpys_dispatch_the_line_is_still_the_users():
    x = sg.placeholder("x", 3)
    for node in (sg.std(x), np.mean(x), sg.concat([x, x]), 1 - x, x[::-1]):
        assert nearest(node).file == __file__
        assert all(nearest(n).file == __file__ for n in node.inputs)


def test_code_without_a_file_has_a_line_all_the_same():
    names = {"sg": sg}
    exec("a = 1\nx = sg.placeholder('x', 3)", names)
    assert str(names["x"].origin) == "<string>:2"
    assert nearest(names["x"]).text == ""


def test_the_gradient_is_made_by_rules_at_the_line_of_what_it_is_the_gradient_of():
    x = sg.placeholder("x", 3)
    loss = sg.sum(sg.exp(x))
    assert not loss.origin.is_backward
    g = sg.grad(loss, x)
    assert g.origin.made_by == (Maker("vjp", "exp"),)
    assert g.origin.is_backward
    assert nearest(g).text == "sg.exp(x)"
    assert str(g.origin).endswith(" by vjp(exp)")


def test_a_maker_is_read_from_what_it_prints():
    for text in ("vjp(exp)", "jvp(vjp(f))", "vjp()"):
        assert str(Maker.parse(text)) == text
        assert Maker.parse(text) == Maker(text[:3], text[4:-1])
        assert Maker.parse(text).is_gradient
    for text in ("rule", "vjp", "vjp(", "", "vjpx(y)"):
        assert Maker.parse(text) == Maker("rewrite", text)
        assert str(Maker.parse(text)) == text


def test_scopes_nest_and_end():
    outside = sg.placeholder("x", 3)
    with scope("layer1"):
        with scope("attention"):
            inner = outside + 1
        outer = outside + 1
    with pytest.raises(ValueError, match="out"), scope("failed"):
        raise ValueError("out")
    assert inner.origin.scope == ("layer1", "attention")
    assert outer.origin.scope == ("layer1",)
    assert (outside + 1).origin.scope == ()


def test_scopes_of_threads_are_their_own():
    found = []
    with scope("here"):
        thread = threading.Thread(target=lambda: found.append(sg.placeholder("x", ())))
        thread.start()
        thread.join()
    assert found[0].origin.scope == ()


def test_origins_are_combined():
    a, b = (sg.placeholder(n, ()).origin for n in "ab")
    gradient, rule = Maker("vjp", "add"), Maker("rewrite", "rule")
    c = Origin(a.frames, ("s",), (gradient,))
    assert a.then(rule).made_by == (rule,)
    assert a.then(rule).then(gradient).made_by == (rule, gradient)
    assert a.merged([a]) == a
    assert a.merged([b]).frames == (a.frames + b.frames if a.frames != b.frames else a.frames)
    many = [sg.placeholder("p", ()).origin, *[eval("sg.placeholder('p', ())").origin for _ in "ab"],
            sg.placeholder("q", ()).origin, sg.placeholder("r", ()).origin]  # fmt: skip
    assert len(a.merged([b, c, *many]).frames) == MOST_FRAMES
    with built_as(c):
        assert current_origin() is c
        assert (sg.placeholder("y", ()) + 1).origin is c
    assert current_origin() is not c


def test_origins_are_no_part_of_equality():
    one, other = (sg.Graph([sg.placeholder("x", 3) + 1]) for _ in "ab")
    with scope("s"):
        third = sg.Graph([sg.placeholder("x", 3) + 1])
    assert one == other == third


def test_equal_lines_of_two_files_are_two_places():
    """Their code objects compare equal."""
    origins = []
    for name in ("one.py", "other.py"):
        found = {"sg": sg, "x": sg.placeholder("x", 3)}
        exec(compile("y = sg.exp(x)", name, "exec"), found)
        origins.append(found["y"].origin)
    assert str(origins[0].merged(origins[1:])) == "one.py:1, other.py:1"


def test_a_resolver_gives_the_lines_of_an_origin_and_does_not_mix_up_files():
    codes = [compile("sg.placeholder('x', 3)", name, "eval") for name in ("one.py", "two.py")]
    assert codes[0] == codes[1]
    origins = [eval(code, {"sg": sg}).origin for code in codes]
    origins.append(origins[0].merged([origins[1]]))
    resolver = Resolver()
    for origin in (*origins, *origins, Origin()):
        assert list(resolver.locations(origin)) == origin.locations
        assert resolver.nearest(origin) == origin.nearest
    assert [p.file for p in origins[2].locations] == ["one.py", "two.py"]
    assert Origin().nearest is None
    assert len({id(p) for o in origins for p in resolver.locations(o)}) == 2
