"""Derivations: each line is evaluated against the one before; browsers and TeX can read it."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.mathtext import MathTextParser

import symgrad as sg
from symgrad.testing.graphs import random_graph

RNG = np.random.default_rng(0)


def net():
    x, y = sg.placeholder("x", ("N", 6)), sg.placeholder("y", ("N", 3))
    w1 = sg.variable("w1", RNG.standard_normal((6, 4)))
    w2 = sg.variable("w_2", RNG.standard_normal((4, 3)))
    h = sg.relu(x @ w1)
    loss = sg.sum((h @ w2 - y) ** 2)
    arrays = {"x": RNG.standard_normal((5, 6)), "y": RNG.standard_normal((5, 3))}
    return sg.derivation(loss, [w1, w2]), arrays


def classifier():
    x, t, w = (
        sg.placeholder("x", ("N", 6)),
        sg.placeholder("t", ("N", 3)),
        sg.placeholder("w", (6, 3)),
    )
    loss = -sg.sum(t * sg.log(sg.softmax(x @ w))) / x.shape[0]
    arrays = {"x": RNG.standard_normal((5, 6)), "t": np.eye(3)[[0, 1, 2, 1, 0]]}
    return sg.derivation(loss, w), arrays | {"w": RNG.standard_normal((6, 3))}


def newton():
    x, y, w = sg.placeholder("x", ("N", 4)), sg.placeholder("y", "N"), sg.placeholder("w", 4)
    loss = sg.sum(sg.log(1 + sg.exp(-y * (x @ w)))) + 0.1 * sg.sum(w**2)
    arrays = {"x": RNG.standard_normal((9, 4)), "y": np.sign(RNG.standard_normal(9))}
    return sg.derivation(loss, w, order=2), arrays | {k: RNG.standard_normal(4) for k in "wv"}


CASES = {"net": net, "classifier": classifier, "newton": newton}


@pytest.fixture(scope="module", params=CASES, ids=str)
def derived(request):
    return CASES[request.param]()


def test_every_line_is_what_stands_before_it(derived):
    derivation, arrays = derived
    errors = derivation.errors(**arrays)
    assert len(errors) == len(derivation.steps) > 12
    assert max(errors) < 1e-12
    for step in derivation.steps:
        assert step.rule
        assert step.reason
        assert step.grade in ("definition", "derivative", "bits", "values", "rounding")
        assert "test_derivation.py" in str(step.line)


def test_each_formula_can_be_set(derived, tmp_path):
    derivation, _ = derived
    text = derivation.latex()
    parse = MathTextParser("path").parse
    formulas = re.findall(r"\\begin\{equation\*\} (.*) \\end", text)
    assert len(formulas) == len(derivation.steps)
    for formula in formulas:
        parse(f"${formula}$")
    assert str(text).isascii()
    latex = shutil.which("pdflatex")
    if latex:
        path = derivation.save(tmp_path / "d.tex")
        options = ["-interaction=nonstopmode", "-halt-on-error", path.name]
        found = subprocess.run([latex, *options], cwd=tmp_path, capture_output=True)
        assert found.returncode == 0, found.stdout[-2000:]


def test_the_page_is_whole_and_asks_for_nothing(derived, tmp_path):
    derivation, _ = derived
    page = derivation.save(tmp_path / "d.html").read_text("utf-8")
    assert "default-src 'none'" in page
    assert not re.search(r"<script|https?:|src=", page)
    article = ET.fromstring(derivation._repr_html_())
    assert len(article.findall(".//math")) == len(derivation.steps)
    with pytest.raises(sg.RenderError, match=r"\.html or \.tex"):
        derivation.save(tmp_path / "d.pdf")


def test_a_net_is_derived_as_a_textbook_does():
    derivation, _ = net()
    said = str(derivation)
    for line in (
        "h = relu(z1)    relu [definition]", "w1' = dloss/dw1 = x^T z1'    vjp(matmul)",
        "z1' = dloss/dz1 = [h > 0] * h'    vjp(relu)", "= 2 z3    times_one [bits]",
        "dloss/dw_2 = h^T z3'",
        "dloss/dw1 = x^T ([relu(x w1) > 0] * (2 (relu(x w1) w_2 - y)) w_2^T)",
    ):  # fmt: skip
        assert line in said, line
    titles = [s.title for s in derivation.sections]
    assert titles == [
        "The function as it was written",
        "The chain rule",
        "Simplified",
        "The gradient",
    ]
    gradients = [str(n.type) for n in derivation.result]
    assert gradients == ["float64[6, 4]", "float64[4, 3]"]


def test_a_wrong_line_is_found():
    derivation, arrays = net()
    step = derivation.steps[-1]
    vars(step)["before"] = step.before * 1.001
    assert max(derivation.errors(**arrays)) > 5e-4


def test_the_hessian_is_that_of_the_library():
    derivation, arrays = newton()
    product = derivation.result[1]
    x, y, w, v = (next(n for n in sg.Graph([product]).inputs if n.name == k) for k in "xywv")
    loss = sg.sum(sg.log(1 + sg.exp(-y * (x @ w)))) + 0.1 * sg.sum(w**2)
    given = [arrays[k] for k in "xywv"]
    found, wanted = sg.compile([x, y, w, v], [product, sg.hessian(loss, w) @ v])(*given)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["</math><script>", "\\input{x}", "a b%$#&_{}^~", "שלום", "x" * 3000]
)
def test_no_name_ends_a_formula(name):
    x = sg.placeholder(name, 3)
    with sg.scope(name):
        derivation = sg.derivation(sg.sum(sg.exp(x) * x), x)
    article = ET.fromstring(derivation._repr_html_())
    assert not list(article.iter("script"))
    parse = MathTextParser("path").parse
    text = derivation.latex(document=False)
    assert "\\input" not in text
    for formula in re.findall(r"\\begin\{equation\*\} (.*) \\end", text)[:6]:
        parse(f"${formula}$")


def test_what_cannot_be_derived_is_refused():
    x = sg.placeholder("x", 3)
    with pytest.raises(sg.GradientError, match=r"a derivation is of a node, and the loss is 3\.0"):
        sg.derivation(3.0, x)
    with pytest.raises(sg.GradientError, match="order is 1"):
        sg.derivation(sg.sum(x), x, order=3)
    with pytest.raises(sg.GradientError, match="scalar"):
        sg.derivation(x, x)
    with pytest.raises(sg.UnsupportedError, match="kinks='left' or 'right'"):
        sg.derivation(sg.sum(sg.relu(x)), x, kinks="split")
    assert max(sg.derivation(sg.sum(sg.relu(x)), x, kinks="right").errors(x=[-1, 0, 1])) == 0


def loop():
    start, rows = sg.placeholder("start", 3), sg.placeholder("rows", ("N", 3))
    end, _ = sg.scan(lambda c, row: (sg.tanh(c * row), c), start, rows)
    return sg.sum(end), start, {"start": RNG.standard_normal(3), "rows": np.ones((4, 3))}


def choices():
    r = sg.placeholder("r", 4)
    m = sg.where(r > 0, r**3, sg.abs(r))
    return sg.max(m) + sg.sum(sg.maximum(r, 0.5)), r, {"r": RNG.standard_normal(4)}


def modules():
    x, t = sg.placeholder("x", ("N", 4)), sg.placeholder("t", ("N",), "int64")
    first, second = sg.random.split(sg.random.key(0))
    layers = sg.nn.Linear(4, 6, key=first), sg.nn.LayerNorm(6), sg.nn.Linear(6, 3, key=second)
    net = sg.nn.Sequential(*layers)
    arrays = {"x": RNG.standard_normal((5, 4)), "t": np.array([0, 1, 2, 1, 0])}
    return sg.nn.cross_entropy(net(x), t), net.parameters(), arrays


def inner():
    x = sg.placeholder("x", 3)
    inside = sg.exp(x)
    return sg.sum(inside**2), inside, {"x": RNG.standard_normal(3)}


@pytest.mark.parametrize("case", [loop, choices, modules, inner])
def test_loops_choices_and_modules(case):
    loss, wrt, arrays = case()
    derivation = sg.derivation(loss, wrt)
    assert max(derivation.errors(**arrays)) < 1e-12
    assert max(s.right.size for s in derivation.steps) <= 50, "what is long is put into lines"
    assert {str(s.line).partition(":")[0] for s in derivation.steps} == {"test_derivation.py"}


def test_random_graphs():
    """The lines of twenty losses, of whatever ops, hold to the digits that these leave."""
    derived = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        inputs, (loss, *_) = random_graph(rng, 8, ("float64",))
        if any(
            n.dtype.kind == "c" for n in sg.Graph([loss]).nodes if not isinstance(n.type, tuple)
        ):
            continue  # by which no real loss has a forward mode that could tell
        try:
            derivation = sg.derivation(loss, inputs[0])
        except sg.GradientError:
            continue  # it does not depend on it
        nodes = [n for s in derivation.steps for n in (s.before, s.after)]
        fed = {n.name: n.shape for n in sg.Graph(nodes).inputs}
        errors = derivation.errors(**{k: rng.uniform(0.5, 1.5, s) for k, s in fed.items()})
        assert all(e < 1e-7 for e in errors), (seed, errors)
        derived += 1
        if derived == 20:
            return
    raise AssertionError(f"only {derived} were derived")


# ---- what a line says is what its nodes are -------------------------------------------------


def lines(derivation, write=str):
    return "\n".join(write(s) for s in derivation.steps)


def test_indices_and_slices_are_written():
    x, t = sg.placeholder("x", ("N", 4)), sg.placeholder("t", "N", "int64")
    said = lines(sg.derivation(sg.nn.cross_entropy(x, t), x))
    assert "z3 = z2[arange, in_range(t, size=4)]" in said
    said = lines(sg.derivation(sg.sum(x[1:3, ::2] ** 2) + sg.sum(x[:, 1]), x))
    assert "z1 = x[1:3, ::2]" in said
    assert "= x[:, 1:2]" in said
    assert "place(2 x[1:3, ::2], [1:3, ::2])" in said


def test_sizes_that_are_products_and_comparisons_are_in_brackets():
    x = sg.placeholder("x", ("N", 2))
    said = lines(sg.derivation(sg.mean(x**2), x))
    assert "L = z2/(2*N)" in said
    assert "1/2*N" not in said
    c = sg.placeholder("c", "N")
    said = lines(sg.derivation(sg.max(sg.cumulative_sum(c**2)), c))
    assert "= (z2 = L or (isnan(z2) and isnan(L)))" in said


def test_greek_letters_are_told_apart_in_latex():
    a, b = sg.placeholder("θ", 3), sg.placeholder("λ1", 3)
    said = sg.derivation(sg.sum(sg.exp(a) * b), a, order=2).latex()
    assert "?" not in said
    for letter in (r"\theta", r"\lambda _{1}", r"\phi"):
        assert letter in said, letter


@pytest.mark.parametrize(("name", "direction"), [("v", "u"), ("v1", "u"), ("w", "v")])
def test_the_direction_has_a_name_of_its_own(name, direction):
    x = sg.placeholder(name, 3)
    derivation = sg.derivation(sg.sum(x**4), x, order=2)
    arrays = {name: RNG.standard_normal(3), direction: RNG.standard_normal(3)}
    assert max(derivation.errors(**arrays)) < 1e-12
    assert f"H {direction} = dφ/d{name}" in str(derivation)
    assert f"{name} + s = {name} - solve(H, grad L)" in str(derivation)


def test_long_parts_of_a_result_are_lines_of_their_own():
    c = sg.placeholder("c", "N")
    z = sg.where(c > 0, sg.exp(-c), c**3)
    loss = sg.max(sg.cumulative_sum(z)) + sg.sum(z) / c.shape[0]
    derivation = sg.derivation(loss, c)
    assert max(derivation.errors(c=RNG.standard_normal(8))) < 1e-12
    assert max(map(len, map(str, derivation.steps))) < 240
