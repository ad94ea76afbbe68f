import numpy as np
import pytest
from scipy import special, stats

import symgrad as sg
from symgrad.ir.errors import UnsupportedError
from symgrad.ir.node import Node
from symgrad.ir.op import REGISTRY
from tests.helpers import close, each, generator, same, sample, value

REGISTRY.every()

A = sample(generator("a"), (3, 4), "float64", (0.2, 0.8))
B = sample(generator("b"), (4,), "float64", (0.2, 0.8))
a, b = sg.placeholder("a", ("N", 4)), sg.placeholder("b", 4)
FEEDS = {a: A, b: B}

CALLS = [
    lambda a, b: np.tanh(a),
    lambda a, b: np.array([1.0, 2.0, 3.0, 4.0]) * a,
    lambda a, b: np.float32(2) + a,
    lambda a, b: np.eye(3, 3) @ np.ones((3, 4)) @ b,
    lambda a, b: np.add(a, b) - np.hypot(b, a),
    lambda a, b: np.mean(a, axis=0),
    lambda a, b: np.mean(a, 1, keepdims=True),
    lambda a, b: np.sum(a, (0, 1)),
    lambda a, b: np.sum(a, axis=-1, out=None, dtype="float32"),
    lambda a, b: np.std(a, axis=0, ddof=1),
    lambda a, b: np.var(a, correction=1),
    lambda a, b: np.prod(a, axis=1),
    lambda a, b: np.max(a) - np.min(a, axis=0),
    lambda a, b: np.any(a > 0.5, axis=0) & np.all(b > 0.1),
    lambda a, b: np.add.reduce(a),
    lambda a, b: np.add.reduce(a, axis=None),
    lambda a, b: np.add.reduce(a, axis=-1, keepdims=True),
    lambda a, b: np.multiply.reduce(a, 1),
    lambda a, b: np.maximum.reduce(a, axis=1) + np.minimum.reduce(a, axis=1),
    lambda a, b: np.where(a > 0.5, a, b),
    lambda a, b: np.clip(a, 0.3, 0.6),
    lambda a, b: np.clip(a, None, 0.6),
    lambda a, b: np.clip(a, a_min=None, a_max=b),
    lambda a, b: np.clip(a, min=0.3, max=None),
    lambda a, b: np.concatenate([a, a], 1),
    lambda a, b: np.concatenate((a, b[None]), axis=0),
    lambda a, b: np.stack([b, np.ones(4)], axis=1),
    lambda a, b: np.reshape(a, (4, -1)),
    lambda a, b: np.transpose(a),
    lambda a, b: np.transpose(a, (1, 0)),
    lambda a, b: np.moveaxis(a, 0, -1),
    lambda a, b: np.matrix_transpose(a),
    lambda a, b: np.squeeze(np.expand_dims(b, (0, 2)), axis=0),
    lambda a, b: np.broadcast_to(b, (2, 4)),
    lambda a, b: np.flip(a, axis=1),
    lambda a, b: np.matmul(a, b),
    lambda a, b: a @ np.arange(8.0).reshape(4, 2),
    lambda a, b: np.vecdot(a, b),
    lambda a, b: np.tensordot(a, b, axes=1),
    lambda a, b: np.tensordot(a, b, ([1], [0])),
    lambda a, b: np.round(10 * a) + np.floor(10 * b),
    lambda a, b: np.zeros_like(a) + np.ones_like(b, dtype="float32"),
    lambda a, b: np.full_like(a, 3),
    lambda a, b: np.astype(a, "float32"),
    lambda a, b: np.real(a) + np.imag(b),
    lambda a, b: np.divmod(a, b)[1],
    lambda a, b: np.float64(3) * a + a.T.T,
    lambda a, b: np.linalg.trace(a[None, :3, :3], offset=1),
    lambda a, b: np.linalg.diagonal(a[None, :3], offset=-1),
    lambda a, b: np.einsum("ij,j->i", a, b),
    lambda a, b: np.einsum("ij->j", a, optimize=True),
    lambda a, b: np.linspace(a[0], b),
    lambda a, b: np.linspace(b, 2.0, 4, False),
    lambda a, b: np.tile(a, (2, 1)),
    lambda a, b: np.roll(a, 1, 0),
    lambda a, b: np.diff(a, 2, axis=0),
    lambda a, b: np.diff(a, prepend=0.0),
    lambda a, b: np.count_nonzero(a > 0.5, 0),
    lambda a, b: np.meshgrid(b, b * 2, copy=True, sparse=False, indexing="ij")[0],
    lambda a, b: np.broadcast_arrays(a, b, subok=False)[1],
    lambda a, b: np.unstack(a, axis=1)[1],
    lambda a, b: np.tril(a, 1) + np.triu(a, k=-1),
    lambda a, b: np.sum(a, keepdims=True, initial=np._NoValue),
    lambda a, b: np.add(a, 1, where=True, casting="same_kind", order="K"),
    lambda a, b: np.round(a, decimals=0),
    lambda a, b: np.reshape(a, (4, -1), order="C", copy=None),
    lambda a, b: np.full_like(a, 3, order="K", subok=True, shape=None),
    lambda a, b: np.expand_dims(a, 1),
    lambda a, b: np.amax(a, 1) - np.amin(a, axis=1),
    lambda a, b: np.std(a, 0, None, None, 1),
    lambda a, b: np.sort(a, kind="stable"),
    lambda a, b: np.logical_and.reduce(a > 0.3, axis=1) | np.logical_or.reduce(a > 0.3, 1),
    lambda a, b: np.logaddexp.reduce(a) - np.logaddexp.reduce(a, axis=None, keepdims=True),
    lambda a, b: np.logaddexp.reduce(a, 1, where=a > 0.3, initial=0.5),
    lambda a, b: np.logaddexp.reduce(np.astype(9 * b, "int64"), where=b > 0.3),
    lambda a, b: np.fmax.reduce(a, 1) - np.fmin.reduce(a, axis=1),
]


@each("call", CALLS)
def test_numpys_functions_build_nodes(call):
    expected = call(A, B)
    found = call(a, b)
    assert isinstance(found, Node) or isinstance(expected, np.ndarray)
    close(value(found, FEEDS), expected, 1e-7)
    assert np.asarray(value(found, FEEDS)).dtype == np.asarray(expected).dtype


def test_questions_about_a_node_are_answered_when_the_graph_is_built():
    assert np.shape(a) == a.shape
    assert (np.ndim(a), np.size(a), np.size(a, 1)) == (2, a.size, 4)
    assert np.isrealobj(a)
    assert not np.iscomplexobj(a)
    assert np.result_type(a, 1.0) == np.float64
    assert np.result_type(a, 1j) == np.complex128
    assert np.can_cast(a, "complex128")


def test_a_clip_from_above_only_is_no_clip_from_below():
    same(value(np.clip(a, a_max=0.5), FEEDS), np.minimum(A, 0.5))


OURS = {
    f: name
    for f, name in REGISTRY.by_numpy.items()
    if isinstance(f, np.ufunc) and name in REGISTRY.ops and REGISTRY.ops[name].elementwise
}


@each("ufunc", OURS)
def test_every_ufunc_that_an_op_names_gives_that_op(ufunc):
    dtype = REGISTRY.ops[OURS[ufunc]].trials.dtypes.split()[0]
    xs = [sg.placeholder(f"x{i}", (2, 2), dtype) for i in range(ufunc.nin)]
    assert ufunc(*xs).op.name == OURS[ufunc]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: np.setdiff1d(a, b), r"np\.setdiff1d has no symbolic form.*~sg\.isin"),
        (lambda: np.apply_along_axis(len, 0, a), "np.apply_along_axis has no symbolic form"),
        (lambda: np.add(a, 1, out=np.zeros((3, 4))), r"np.add cannot write.*y = np.add\(...\)"),
        (lambda: np.sum(a, out=np.zeros(())), r"np.sum on a symbolic node takes no out; sg.sum\("),
        (lambda: np.add(a, 1, where=A > 0), "np.add on a symbolic node takes no where"),
        (lambda: np.subtract.reduce(a), "np.subtract.reduce has no symbolic form; write a fold"),
        (lambda: np.add.at(A, 0, b), "np.add.at has no symbolic form; it writes into an array"),
        (lambda: np.sort(a, order="f"), "takes no order"),
        (lambda: np.einsum("ij->j", a, out=np.zeros(4)), r"np.einsum .* takes no out"),
    ],
)
def test_what_has_no_symbolic_form_is_refused_by_name(call, words):
    with pytest.raises(UnsupportedError, match=words):
        call()


@pytest.mark.parametrize("call", [lambda: np.setdiff1d(a, b), lambda: np.sum(a, out=np.zeros(()))])
def test_a_refusal_is_short_and_shows_no_annotations(call):
    with pytest.raises(UnsupportedError) as caught:
        call()
    text = str(caught.value)
    assert len(text) < 250
    assert text.count("sg.") <= 3
    assert "Node" not in text
    assert "Any" not in text


def test_all_that_there_is_is_listed():
    for name in REGISTRY.by_numpy.values():
        *path, last = REGISTRY.qualified_name(name).split(".")[1:]
        assert last in dir(getattr(sg, path[0]) if path else sg)


def test_an_array_is_not_written_through_an_in_place_operator():
    array = np.ones((3, 4))
    with pytest.raises(UnsupportedError, match=r"in-place operator.*y = a \+ node"):
        array += a
    with pytest.raises(UnsupportedError):
        array @= np.eye(4) * sg.placeholder("s", ())
    same(array, np.ones((3, 4)))


def test_nothing_becomes_an_array_of_objects():
    c = sg.placeholder("c", (3, 4))
    for made in (A * c, A + c, c > B, A @ b, np.float64(2) ** b, c == B):
        assert isinstance(made, Node)


def test_an_array_does_not_take_a_node_as_an_element():
    with pytest.raises((TypeError, ValueError)):
        np.zeros(3)[0] = sg.placeholder("s", ())


# ---- SciPy's functions ----------------------------------------------------------------------


def scipys():
    """The ufuncs of SciPy that build a node, each with so many arguments."""
    for name in dir(special):
        ufunc = getattr(special, name)
        if isinstance(ufunc, np.ufunc) and ufunc.nout == 1:
            try:
                ufunc(*[a] * ufunc.nin)
            except (UnsupportedError, sg.ArgumentError):
                continue  # it has no symbolic form, or takes an int
            yield name


@each("name", list(scipys()))
def test_scipys_functions_on_nodes_are_ours_and_say_the_same(name):
    ufunc = getattr(special, name)
    arrays = [A, A[::-1], A[:, ::-1], A[::-1, ::-1]][: ufunc.nin]
    nodes = [sg.placeholder(f"x{i}", A.shape) for i in range(ufunc.nin)]
    close(sg.compile(nodes, ufunc(*nodes))(*arrays), ufunc(*arrays), 1e-11)
    close(sg.compile(nodes[0], ufunc(nodes[0], *arrays[1:]))(A), ufunc(*arrays), 1e-11)


def test_all_that_symgrad_has_of_scipys_functions_is_reached():
    offered = {n for n in sg.special.__all__ if isinstance(getattr(special, n, None), np.ufunc)}
    offered -= {"airy", "sici", "eval_gegenbauer", "eval_legendre"}  # see below
    assert offered | {"psi", "jn", "log_expit", "expm1", "log1p", "round", "cbrt", "exp2"} == set(
        scipys()
    )


def test_functions_of_scipys_with_several_results_or_an_int():
    for found, expected in (
        (special.airy(b), special.airy(B)),
        (special.sici(b), special.sici(B)),
        ([special.eval_legendre(3, b)], [special.eval_legendre(3, B)]),
        ([special.eval_gegenbauer(3, 1.5, b)], [special.eval_gegenbauer(3, 1.5, B)]),
    ):
        close(sg.compile([b], list(found))(B), list(expected), 1e-13)


def test_functions_of_scipys_that_take_arrays_say_what_to_write():
    x = sg.placeholder("x", (3,))
    for function, mend in (
        (special.logsumexp, r"scipy.special.logsumexp takes arrays, not nodes; write sg.logsumexp"),
        (special.softmax, "write sg.softmax"),
        (stats.norm.logpdf, r"write with sg.stats, as in sg.stats.Normal"),
        (stats.zscore, "write with sg.stats"),
        (lambda x: special.comb(x, 2), r"scipy.special.comb takes arrays.*give it what a program"),
        (special.zeta, "write sg.zeta"),
        (special.lambertw, "write sg.special.lambertw"),
    ):
        with pytest.raises(sg.SymgradError, match=mend):
            function(x)


def test_a_loss_with_a_name_of_scipys_is_another_function():
    assert sg.nn.kl_div is not None
    assert special.kl_div(a, a).op is sg.special.kl_div(a, a).op
    assert special.kl_div(a, a).shape == a.shape  # the loss is a mean


def test_a_function_of_scipys_that_symgrad_lacks_is_refused_by_name():
    with pytest.raises(UnsupportedError, match=r"^scipy\.special\.struve has no symbolic form"):
        special.struve(1, b)


def test_a_ufunc_of_somebody_elses_with_a_name_of_scipys_is_not_ours():
    erf = np.frompyfunc(lambda x: 7.0, 1, 1)
    with pytest.raises(UnsupportedError):
        erf(b)


def test_scipys_functions_take_no_out():
    with pytest.raises(UnsupportedError, match="out="):
        special.erf(b, out=np.empty(4))
