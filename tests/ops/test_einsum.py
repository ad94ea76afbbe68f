"""`sg.einsum` against NumPy's."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import ShapeError
from tests.helpers import close, each, generator, value
from tests.rules.becomes import ops


def operands(text, *shapes):
    rng = generator(text)
    arrays = [rng.standard_normal(s) for s in shapes]
    return arrays, [sg.placeholder(f"x{i}", s) for i, s in enumerate(shapes)]


@each(
    ("text", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba,cb", [(2, 3), (4, 2)]),
        ("ij, kj -> ki", [(2, 3), (4, 3)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("iij->j", [(3, 3, 2)]),
        ("ijj,j->i", [(2, 3, 3), (3,)]),
        ("iiji->j", [(2, 2, 3, 2)]),
        ("ij->", [(2, 3)]),
        ("ij->ji", [(2, 3)]),
        ("i,i", [(3,), (3,)]),
        ("i,j->ij", [(3,), (4,)]),
        ("i,ij,j", [(3,), (3, 4), (4,)]),
        ("bi,bi->b", [(4, 3), (4, 3)]),
        ("ij,k->i", [(2, 3), (4,)]),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("ijk,jil->kl", [(2, 3, 4), (3, 2, 5)]),
        ("a,ab,abc->abc", [(2,), (2, 3), (2, 3, 4)]),
        ("...ij,jk->...ik", [(5, 2, 3), (3, 4)]),
        ("...ij,...jk->...ik", [(1, 2, 3), (4, 3, 2)]),
        ("...i,...i->...", [(5, 3), (3,)]),
        ("...,...", [(2, 3), (3,)]),
        ("b...a->a...", [(2, 3, 4)]),
        ("ij,jk->ik", [(2, 1), (3, 4)]),
        ("bi,bj->bij", [(1, 2), (1, 3)]),
        ("k,m->km", [(1,), (3,)]),
        ("k,m,n->kmn", [(1,), (1,), (3,)]),
        ("j,jk,m->km", [(2,), (2, 1), (3,)]),
        ("...i,...j->...ij", [(1, 1, 2), (1, 3)]),
        ("ij,jk->ik", [(2, 0), (0, 4)]),
        ("ab,bc,cd,de,ef,fg,gh,hi->ai", [(2, 3), (3, 2), *[(2, 2)] * 6]),
    ],
)
def test_einsum_is_numpys(text, shapes):
    arrays, xs = operands(text, *shapes)
    expected, y = np.einsum(text, *arrays), sg.einsum(text, *xs)
    assert y.shape == expected.shape
    close(value(y, dict(zip(xs, arrays, strict=True))), expected)
    weights = generator("weights").standard_normal(expected.shape)
    grads = sg.compile(xs, sg.grad(sg.sum(y * weights), xs, disconnected="zero"))(*arrays)
    for i, (x, g) in enumerate(zip(arrays, grads, strict=True)):
        step = generator(f"{i}").standard_normal(x.shape)
        moved = np.einsum(text, *(step if k == i else a for k, a in enumerate(arrays)))
        assert g.shape == x.shape
        close(np.vdot(g, step), np.vdot(moved, weights))


def test_integers_stay_as_they_are():
    x = sg.placeholder("x", (2, 3), "int32")
    assert sg.einsum("ij->", x).dtype == "int32"
    assert sg.einsum("ij,ij->i", x, x).dtype == "int32"


def test_it_is_made_of_products():
    _, (a, b) = operands("a", (2, 3), (3, 4))
    assert sg.Graph(sg.einsum("ij,jk->ik", a, b)) == sg.Graph(a @ b)
    assert sg.Graph(sg.einsum("ij,kj->ik", a, b.T)) == sg.Graph(a @ b.T.T)


@pytest.mark.parametrize("sizes", [(10, 2, 30, 3, 20), (2, 30, 3, 40, 5), ("N", 1, 50, 1, "N")])
def test_several_operands_meet_in_the_cheapest_order(sizes):
    a, b, c, d = (sg.placeholder(n, sizes[i : i + 2]) for i, n in enumerate("abcd"))
    ways = [((a @ b) @ c) @ d, (a @ (b @ c)) @ d, a @ ((b @ c) @ d), a @ (b @ (c @ d))]
    ways.append((a @ b) @ (c @ d))
    assert cost(sg.einsum("ij,jk,kl,lm->im", a, b, c, d)) == min(map(cost, ways))


def cost(y):
    """How many products of numbers a graph takes, N being 64."""
    from symgrad.ir.dims import guess

    nodes = [n for n in sg.Graph(y).nodes if n.op.name == "matmul"]
    return sum(guess(n.size) * guess(n.inputs[0].shape[-1]) for n in nodes)


def test_an_outer_product_is_no_matrix_product():
    _, (a, b) = operands("a", (3,), (4,))
    assert ops(sg.Graph(sg.einsum("i,j->ij", a, b))) == ["reshape", "multiply"]


@pytest.mark.parametrize(
    ("text", "shapes", "words"),
    [
        ("ij,jk->ik", [(2, 3), (4, 4)], "3 and 4 do not match"),
        ("ij,jk->ik", [(2, 3)], "names 2 operands, not 1"),
        ("ij->i", [(2, 3, 4)], "names 2 axes of 3"),
        ("ijk->i", [(2, 3)], "names 3 axes of 2"),
        ("i1->i", [(2, 3)], "not made of letters"),
        ("ij->ik", [(2, 3)], "letters of the operands, each once"),
        ("ij->ii", [(2, 3)], "letters of the operands, each once"),
        ("ii->i", [(2, 3)], "2 and 3 do not match"),
        ("i..j->i", [(2, 3)], "not made of letters"),
    ],
)
def test_what_does_not_fit_is_refused(text, shapes, words):
    _, xs = operands(text, *shapes)
    with pytest.raises(ShapeError, match=words):
        sg.einsum(text, *xs)


def test_a_text_comes_first():
    with pytest.raises(ShapeError, match="einsum takes a text"):
        sg.einsum(sg.placeholder("x", (2, 3)))


def of_all_products(subscripts, a, b):
    """Every product is made, and then they are summed."""
    (left, right), wanted = subscripts.split("->")[0].split(","), subscripts.split("->")[1]
    sizes = {**dict(zip(left, a.shape, strict=True)), **dict(zip(right, b.shape, strict=True))}
    every = [*wanted, *sorted({*sizes} - {*wanted})]
    total = 1.0
    for word, array in ((left, a), (right, b)):
        order = sorted(word, key=every.index)
        placed = array.transpose([word.index(s) for s in order])
        total = total * placed.reshape([sizes[s] if s in word else 1 for s in every])
    products = np.broadcast_to(total, [sizes[s] for s in every])
    return products.sum(axis=tuple(range(len(wanted), len(every))))


def kinds(array):
    """Which numbers are NaN, inf and -inf."""
    return np.where(np.isnan(array), 2, np.where(np.isinf(array), np.sign(array), 0))


@pytest.mark.parametrize(
    "subscripts",
    [
        "ij,jk->k",
        "ij,jk->",
        "ij,jk->j",
        "ij,j->",
        "ij,kl->il",
        "i,j->",
        "bij,bjk->bk",
        "ij,jk->ik",
        "ij,ij->i",
    ],
)
def test_infinities_and_nans_of_two_operands_are_those_of_all_products(subscripts):
    sizes = {"i": 3, "j": 3, "k": 3, "l": 2, "b": 2}
    shapes = [[sizes[s] for s in word] for word in subscripts.split("->")[0].split(",")]
    xs = [sg.placeholder(f"x{i}", shape) for i, shape in enumerate(shapes)]
    program = sg.compile(xs, sg.einsum(subscripts, *xs))
    rng, special = generator(subscripts), [-np.inf, np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 2.0]
    for _ in range(60):
        chances = [0.05, 0.05, 0.02, 0.1, 0.1, 0.28, 0.2, 0.2]
        arrays = [rng.choice(special, shape, p=chances) for shape in shapes]
        with np.errstate(invalid="ignore"):
            expected = of_all_products(subscripts, *arrays)
        np.testing.assert_array_equal(kinds(program(*arrays)), kinds(expected), str(arrays))


def test_numbers_stand_for_letters():
    (a, b, c), xs = operands("ij,jk,kll", (3, 4), (4, 5), (2, 3, 3))
    for call in (
        lambda a, b, c: np.einsum(a, [0, 1], b, [1, 2], [0, 2]),
        lambda a, b, c: np.einsum(a, [0, 30], b, (30, 2)),
        lambda a, b, c: np.einsum(c, [..., 1, 1]),
        lambda a, b, c: np.einsum(c, [..., 1, 2], c, [..., 2, 3], [..., 3, 1]),
        lambda a, b, c: np.einsum(a, [np.int64(30), 2]),
        lambda a, b, c: np.einsum(a, [0, 1], [], optimize=True),
    ):
        expected, y = call(a, b, c), call(*xs)
        assert y.shape == expected.shape
        close(value(y, dict(zip(xs, (a, b, c), strict=True))), expected)
    for wrong in ((xs[0], [0, 1], xs[1]), (xs[0],), (xs[0], 3), (xs[0], [0, 1], xs[1], [1, 2], 0)):
        with pytest.raises(ShapeError, match="einsum takes a text"):
            sg.einsum(*wrong)
    for axes in ([0, 52], [0, -1], [0, "i"]):
        with pytest.raises(ShapeError, match="an axis is a number from 0 to 51"):
            sg.einsum(xs[0], axes)
