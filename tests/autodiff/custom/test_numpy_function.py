"""Functions of a user's own, with bodies over real arrays."""

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import close, each, generator, same, value

AT = np.array([-2.0, 0.0, 3.0])


class MyReLU(sg.NumpyFunction):
    """Static methods; the gradient at 0 is 1, since only what is below 0 is zeroed."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return np.maximum(x, 0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = grad_output.copy()
        grad[x < 0] = 0
        return grad


class OwnReLU(sg.NumpyFunction):
    """Methods of an instance, which keeps its mask as an attribute."""

    def forward(self, x):
        self.mask = x < 0
        y = x.copy()
        y[self.mask] = 0
        return y

    def backward(self, grad_output):
        grad = grad_output.copy()
        grad[self.mask] = 0
        return grad


class Split(sg.NumpyFunction):
    """Two results, an argument that is no tensor, and one without a gradient."""

    @staticmethod
    def forward(ctx, x, weights, count):
        assert isinstance(x, np.ndarray)
        assert not x.flags.writeable
        root = np.sqrt(np.abs(x))
        ctx.save_for_backward(x, root)
        ctx.count = count
        return root * count, np.sum(x * weights)

    @staticmethod
    def backward(ctx, groot, gsum):
        x, root = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False, False)
        return groot * ctx.count * np.sign(x) / (2 * root) + gsum, None, None


def mine(**methods):
    """A class `Mine` with these static methods."""
    return type("Mine", (sg.NumpyFunction,), {k: staticmethod(f) for k, f in methods.items()})


def leaf(shape=3, dtype="float64"):
    return sg.placeholder("x", shape, dtype)


# ---- in a program ---------------------------------------------------------------------------


@pytest.mark.parametrize("relu", [MyReLU.apply, OwnReLU()])
@pytest.mark.parametrize("options", [{}, {"passes": ()}, {"backend": "reference"}])
def test_values_and_gradients(relu, options):
    x = leaf()
    y = relu(x * 2)
    program = sg.compile([x], [y, sg.grad(sg.sum(y * AT), x)], **options)
    for at in (AT, -AT):
        same(program(at)[0], np.maximum(2 * at, 0))
        same(program(at)[1], 2 * AT * (at >= 0))
    same(value(sg.grad(sg.sum(y), x), {x: AT}), [0.0, 2, 2])


def test_both_bodies_run_in_their_place():
    x = leaf()
    y = sg.exp(MyReLU.apply(sg.tanh(x)))
    steps = sg.compile([x], sg.grad(sg.sum(y), x)).plan.steps
    names = [s.name for s in steps]
    assert names.count("numpy_function") == 2
    assert names.index("tanh") < names.index("numpy_function") < names.index("exp")


def test_in_updates():
    w = sg.variable("w", np.array([3.0, -4.0]))
    y = MyReLU.apply(w)
    program = sg.compile([], sg.sum(y), updates={w: w - 0.5 * sg.grad(sg.sum(y * y), w)})
    assert program() == 3
    same(w.value, [0.0, -4.0])


def test_0d():
    x = leaf(())
    square = mine(
        forward=lambda ctx, x: (ctx.save_for_backward(x), x * x)[1],
        backward=lambda ctx, g: 2 * g * ctx.saved_tensors[0],
    )
    y = square.apply(x)
    assert y.shape == ()
    assert sg.compile([x], [y, sg.grad(y, x)])(3.0) == [9.0, 6.0]
    assert float(square.apply(sg.constant(2.0))) == 4


@pytest.mark.parametrize("options", [{}, {"passes": ()}, {"backend": "reference"}])
def test_several_results_and_other_arguments(options):
    x = leaf()
    roots, total = Split.apply(x, np.array([1, 2, 3]), 10)
    assert (roots.type, total.type) == (x.type, sg.TensorType((), "float64"))
    at = np.array([4.0, -9.0, 1.0])
    dx = sg.grad(sg.sum(roots) + 5 * total, x)
    found = sg.compile([x], [roots, total, dx], **options)(at)
    same(found[0], [20.0, 30, 10])
    same(found[1], np.float64(-11))
    same(found[2], [2.5 + 5, -10 / 6 + 5, 10])
    close(sg.compile([x], sg.grad(total, x), **options)(at), np.ones(3))


def test_none_is_zeros():
    half = mine(forward=lambda ctx, a, b: a * b, backward=lambda ctx, g: (g, None))
    a, b = leaf(), sg.placeholder("b", 3)
    program = sg.compile([a, b], list(sg.grad(sg.sum(half.apply(a, b)), [a, b])))
    same(program(AT, AT)[1], np.zeros(3))


def test_what_is_saved_is_of_its_own_call():
    own, x = OwnReLU(), leaf()
    y = own(x) * own(-x) + own(own(x))
    program = sg.compile([x], [y, sg.grad(sg.sum(y), x)])
    at = np.array([-1.0, 2.0, 4.0])
    same(program(at)[0], [0.0, 2, 4])
    same(program(at)[1], [0.0, 1, 1])
    assert not vars(own)


def test_what_is_kept_of_a_result_is_its_copy():
    """A body may return what it was given, or the same array twice, and go on writing into it."""
    scratch = np.zeros(3)

    def forward(ctx, x):
        scratch[:] = x * 2
        ctx.save_for_backward(x)
        return scratch, scratch, x

    own = mine(forward=forward, backward=lambda ctx, a, b, c: 2 * a + 2 * b + c)
    x = leaf()
    results = own.apply(x)
    others = own.apply(x + 1)
    found = sg.compile([x], [*results, *others])(AT)
    for y, expected in zip(
        found, [2 * AT, 2 * AT, AT, 2 * AT + 2, 2 * AT + 2, AT + 1], strict=True
    ):
        same(y, expected)
    same(sg.compile([x], sg.grad(sg.sum(results[0] + results[1] + results[2]), x))(AT), [5.0, 5, 5])


def test_the_forward_is_tried_out_once():
    seen = []

    def forward(ctx, x):
        seen.append(x.copy())
        return x.astype("float32")

    x = leaf()
    y = mine(forward=forward).apply(x)
    assert len(seen) == 1
    same(seen[0], np.ones(3))
    assert y.dtype == "float32"
    program = sg.compile([x], y)
    assert len(seen) == 1
    program(AT)
    same(seen[1], AT)


# ---- stated types ---------------------------------------------------------------------------


class Softmax(sg.NumpyFunction):
    """States its types, and so takes named dimensions."""

    def output_types(self, x):
        return x

    def forward(self, x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        y = e / e.sum(axis=1, keepdims=True)
        self.save_for_backward(y)
        return y

    def backward(self, g):
        (y,) = self.saved_tensors
        return y * (g - np.sum(g * y, axis=1, keepdims=True))


def softmax(x):
    e = sg.exp(x - sg.max(x, axis=1, keepdims=True))
    return e / sg.sum(e, axis=1, keepdims=True)


def test_named_dimensions():
    x = leaf(("N", 4))
    rng = generator("softmax")
    weights = rng.standard_normal(4)
    ours, theirs = (sg.grad(sg.sum(f(x) * weights), x) for f in (Softmax(), softmax))
    program, expected = sg.compile([x], ours), sg.compile([x], theirs)
    for n in (1, 5, 0):
        at = rng.standard_normal((n, 4))
        close(program(at), expected(at))


def test_several_types_are_stated_and_nothing_is_tried_out():
    def forward(ctx, x, k):
        assert x.shape == (5,)
        return x[:k], x.sum()

    own = mine(
        output_types=lambda x, k: (sg.TensorType((k,), x.dtype), sg.TensorType((), x.dtype)),
        forward=forward,
        backward=lambda ctx, g, h: (np.r_[g, np.zeros(5 - 2)] + h, None),
    )
    x = leaf(("N",))
    first, total = own.apply(x, 2)
    assert (first.shape, total.shape) == ((2,), ())
    program = sg.compile([x], [first, total, sg.grad(sg.sum(first) + total, x)])
    found = program(np.arange(5.0))
    same(found[0], [0.0, 1])
    same(found[1], np.float64(10))
    same(found[2], [2.0, 2, 1, 1, 1])


# ---- in place and on batches ----------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"passes": ()}, {"backend": "reference"}])
@pytest.mark.parametrize("shape", [(3,), ()])
def test_a_forward_in_place(options, shape):
    class Mine(sg.NumpyFunction):
        def output_types(self, x):
            return x, x

        def forward_out(self, x, out):
            double, square = out
            np.multiply(x, 2, double)
            np.multiply(x, x, square)
            self.save_for_backward(x, double)

        def backward(self, g, h):
            _, double = self.saved_tensors
            return 2 * g + double * h

    x = leaf(shape)
    double, square = Mine()(x)
    dx = sg.grad(sg.sum(double) + 10 * sg.sum(square), x)
    at = np.ones(shape) * 3
    found = sg.compile([x], [double, square, dx], **options)(at)
    for y, expected in zip(found, [6, 9, 62], strict=True):
        same(y, at * 0 + expected)
    same(value(square, {x: at}), at * 3)


def test_a_forward_in_place_runs_instead_of_the_other():
    def forward_out(ctx, x, out):
        np.negative(x, out)
        ctx.mask = x < 0

    def forward(ctx, x):
        ctx.mask = x < 0
        return -x

    own = mine(forward=forward, forward_out=forward_out, backward=lambda ctx, g: g * ctx.mask)
    x = leaf()
    y = own.apply(x)
    program = sg.compile([x], [y, sg.grad(sg.sum(y), x)])
    assert "out=" in program.source
    same(program(AT)[0], -AT)
    same(program(AT)[1], [1.0, 0, 0])


CALLS = []


class Counted(sg.NumpyFunction):
    """Knows how to work on a batch, and tells how it was called."""

    @staticmethod
    def forward(ctx, x):
        CALLS.append(("forward", x.shape))
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        CALLS.append(("backward", g.shape))
        return 3 * g * ctx.saved_tensors[0] ** 2

    batched_forward, batched_backward = forward, backward


def test_a_jacobian_runs_the_batched_form_once(monkeypatch):
    x = leaf()
    expected = np.diag(3 * AT**2)
    plain = type("Plain", (Counted,), {})
    monkeypatch.delattr(Counted, "batched_backward")
    monkeypatch.delattr(Counted, "batched_forward")
    same(sg.compile([x], sg.jacobian(plain.apply(x), x))(AT), expected)
    monkeypatch.undo()
    y = Counted.apply(x)
    program = sg.compile([x], sg.jacobian(y, x))
    CALLS.clear()
    same(program(AT), expected)
    assert CALLS == [("backward", (3, 3))]


@pytest.mark.parametrize("own", [Counted.apply, OwnReLU(), Softmax()])
def test_a_batch_is_the_rows(own):
    x = leaf((4, 2, 3))
    rng = generator("rows")
    at = rng.standard_normal((4, 2, 3))
    y = sg.vmap(own)(x)
    expected = [value(own(sg.constant(row))) for row in at]
    same(sg.compile([x], y)(at), np.stack(expected))
    single = leaf((2, 3))
    rows = [value(sg.grad(sg.sum(own(single) * at[0]), single), {single: row}) for row in at]
    close(sg.compile([x], sg.grad(sg.sum(y * at[0]), x))(at), np.stack(rows))


def test_a_batch_of_batches_and_of_none():
    x = leaf((2, 4, 3))
    at = generator("nested").standard_normal((2, 4, 3))
    for own in (OwnReLU(), Counted.apply):
        y = sg.vmap(sg.vmap(own))(x)
        dx = sg.grad(sg.sum(y), x)
        expected = value(sg.grad(sg.sum(own(x)), x), {x: at})
        close(value(dx, {x: at}), expected)
    none = leaf((0, 3))
    same(sg.compile([none], sg.vmap(OwnReLU())(none))(np.zeros((0, 3))), np.zeros((0, 3)))


# ---- what is refused ------------------------------------------------------------------------

FILE = "applied at test_numpy_function.py"


def refused(kind, method, use, *words):
    with pytest.raises(kind) as caught:
        use()
    text = str(caught.value)
    assert text.startswith(f"Mine.{method}: "), text
    for word in (*words, FILE):
        assert word in text, text


def test_derivatives_that_there_are_not():
    own = type("Mine", (MyReLU,), {})
    x = leaf()
    y = sg.sum(own.apply(x) ** 2)
    first = sg.grad(y, x)
    words = ("write its bodies with sg's functions", "as a Function")
    refused(
        sg.GradientError, "backward", lambda: sg.grad(sg.sum(first), x), "no higher deriv", *words
    )
    refused(sg.GradientError, "forward", lambda: sg.jvp(y, x, AT), "no forward mode", *words)
    refused(sg.GradientError, "forward", lambda: sg.hessian(y, x), "no forward mode", *words)


def test_a_missing_method():
    x = leaf()
    refused(sg.GradientError, "forward", lambda: mine().apply(x), "it is missing; define forward")
    y = mine(forward=lambda ctx, x: x * 2).apply(x)
    refused(sg.GradientError, "backward", lambda: sg.grad(sg.sum(y), x), "it is missing; define")
    with pytest.raises(sg.GradientError, match="was given no node"):
        mine(forward=lambda ctx, x: np.ones(3)).apply(3.0)


def test_types_that_are_not_known():
    named = leaf(("N", 3))
    own = mine(forward=lambda ctx, x: x)
    refused(
        sg.ShapeError, "forward", lambda: own.apply(named),
        "it cannot be tried out, since the sizes N are not known", "output_types(x, …)",
    )  # fmt: skip
    own = mine(forward_out=lambda ctx, x, out: None)
    refused(sg.ShapeError, "forward", lambda: own.apply(leaf()), "there is no forward", "output_t")
    for stated, words in [(3, "it returned 3, and a type is wanted"), ((), "returned nothing")]:
        own = mine(output_types=lambda x, stated=stated: stated, forward=lambda ctx, x: x)
        refused(sg.GradientError, "output_types", lambda own=own: own.apply(leaf()), words)


def fails(ctx, *args):
    raise ValueError("no such thing")


def fails_on(ctx, x):
    x[0] = 1
    return x


@pytest.mark.parametrize(
    ("kind", "forward", "words"),
    [
        (sg.KernelError, fails, ["it failed when tried out on ones: ValueError: no such thing"]),
        (sg.KernelError, fails_on, ["tried out on ones: ValueError: assignment destination is re"]),
        (sg.GradientError, lambda ctx, x: None, ["it returned None, and a tensor is wanted"]),
    ],
)
def test_a_forward_that_cannot_be_tried_out(kind, forward, words):
    refused(kind, "forward", lambda: mine(forward=forward).apply(leaf()), *words)


def of_values(forward):
    """A forward that does another thing on ones, on which it is tried out."""

    def run(ctx, x):
        return x if (x == 1).all() else forward(ctx, x)

    return run


@each(
    ("forward", "words"),
    [
        (fails, ["it failed: ValueError: no such thing"]),
        (lambda ctx, x: x[:2], ["result 1 is float64[2], and float64[3] is wanted"]),
        (lambda ctx, x: x * 1j, ["complex128[3], and float64[3]", "x.astype('float64')"]),
        (lambda ctx, x: "y", ["result 1 is str, and an array is wanted"]),
        (lambda ctx, x: (x, x), ["it returned 2 results, and 1 are wanted"]),
        (lambda ctx, x: ctx.save_for_backward(x) or x, ["saved_tensors is another in this run"]),
        (lambda ctx, x: setattr(ctx, "kept", 2 * x) or x, ["ctx.kept is another in this run"]),
        (lambda ctx, x: setattr(ctx, "top", float(x.max())) or x, ["ctx.top is another", "array"]),
    ],
)
@each("options", [{}, {"backend": "reference"}])
def test_a_forward_that_fails_while_a_program_runs(forward, words, options):
    x = leaf()
    program = sg.compile([x], mine(forward=of_values(forward)).apply(x), **options)
    same(program(np.ones(3)), np.ones(3))
    refused(sg.KernelError, "forward", lambda: program(AT), *words)
    same(program(np.ones(3)), np.ones(3))


@pytest.mark.parametrize(
    ("backward", "words"),
    [
        (fails, ["it failed: ValueError: no such thing"]),
        (lambda ctx, g: g[:2], ["the gradient of 'x' is float32[2], and float32[3] is wanted"]),
        (lambda ctx, g: g * np.ones(3), ["float64[3], and float32[3]", "x.astype('float32')"]),
        (lambda ctx, g: (g, g), ["2 gradients, and forward was given 1 argument"]),
        (lambda ctx, g: ctx.saved_tensors, ["GradientError: nothing was saved"]),
        (lambda ctx, g: "g", ["the gradient of 'x' is str, and an array is wanted"]),
    ],
)
def test_a_backward_that_fails_while_a_program_runs(backward, words):
    own = mine(forward=lambda ctx, x: 2 * x, backward=backward)
    x = leaf(dtype="float32")
    program = sg.compile([x], sg.grad(sg.sum(own.apply(x) ** 2), x))
    refused(sg.KernelError, "backward", lambda: program(AT.astype("float32")), *words)


def test_an_update_that_fails_changes_nothing():
    w = sg.variable("w", AT)
    own = mine(forward=of_values(fails))
    program = sg.compile([], [], updates={w: own.apply(w)})
    with pytest.raises(sg.KernelError, match="no such thing"):
        program()
    same(w.value, AT)


def test_what_depends_on_values_reaches_backward_as_an_array_only():
    def scaled(ctx, x):
        ctx.top = x.max()
        return x / ctx.top

    own = mine(forward=scaled, backward=lambda ctx, g: g / ctx.top)
    x = leaf()
    program = sg.compile([x], sg.grad(sg.sum(own.apply(x)), x))
    same(program(np.array([1.0, 2, 4])), np.full(3, 0.25))
    same(program(np.array([1.0, 2, 8])), np.full(3, 0.125))


def test_a_number_that_depends_on_values_is_noticed_where_only_the_gradient_is_wanted():
    def scaled(ctx, x):
        ctx.top = float(x.max())
        return x / ctx.top

    own = mine(forward=scaled, backward=lambda ctx, g: g / ctx.top)
    x = leaf()
    program = sg.compile([x], sg.grad(sg.sum(own.apply(x)), x))
    same(program(np.array([0.0, 0, 1])), np.ones(3))
    refused(sg.KernelError, "forward", lambda: program(AT), "ctx.top is another in this run")


def test_with_stated_types_only_arguments_and_results_are_saved():
    own = mine(
        output_types=lambda x: x,
        forward=lambda ctx, x: (ctx.save_for_backward(x * 2), x)[1],
        backward=lambda ctx, g: g,
    )
    x = leaf()
    program = sg.compile([x], own.apply(x))
    refused(sg.KernelError, "forward", lambda: program(AT), "neither an argument nor a result")


def test_a_backward_without_its_forward():
    x = leaf(("N", 4))
    y = Softmax()(x)
    g = sg.grad(sg.sum(y * np.arange(4.0)), x)
    own = next(n for n in sg.Graph([y]).nodes if n.op.name == "numpy_function")
    with pytest.raises(sg.KernelError, match=r"Softmax.backward: it runs before forward"):
        value(g, {x: np.ones((1, 4)), own: np.full((1, 4), 0.25)})


def test_it_is_not_written_as_text_nor_as_a_file(tmp_path):
    x = leaf()
    y = MyReLU.apply(x)
    text = sg.Graph([y]).text()
    assert "numpy_function(n0, body='MyReLU.forward'" in text
    with pytest.raises(sg.ParseError, match=r"MyReLU.forward is a function in Python"):
        sg.Graph.parse(text)
    program = sg.compile([x], y)
    with pytest.raises(sg.GraphError, match=r"kernels of your own \(numpy_function\)"):
        program.save_source(tmp_path / "p.py")
    assert list(tmp_path.iterdir()) == []


def test_a_body_may_write_into_its_cotangent():
    class Masked(sg.NumpyFunction):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return np.maximum(x, 0)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_output[x < 0] = 0
            return grad_output

    x = sg.placeholder("x", 3)
    g = sg.grad(sg.sum(Masked.apply(x) * 3.0), x)
    np.testing.assert_array_equal(sg.compile([x], g)([-1.0, 1.0, 2.0]), [0, 3, 3])
    sg.testing.check_grads(Masked.apply, np.array([-1.0, 1.0, 2.0]))


# ---- what is kept that is neither argument nor result ---------------------------------------


def saves(ctx, x):
    e = np.exp(2 * x)
    ctx.save_for_backward(e)
    return (e - 1) / (e + 1)


def sets(ctx, x):
    saves(ctx, x)
    ctx.e = ctx.saved_tensors[0]
    return (ctx.e - 1) / (ctx.e + 1)


LAST = {}


class Elsewhere(sg.NumpyFunction):
    """Keeps what it needs where nobody looks for it."""

    @staticmethod
    def forward(ctx, x):
        LAST["y"] = np.tanh(x)
        return LAST["y"].copy()

    @staticmethod
    def backward(ctx, g):
        return g * (1 - LAST["y"] ** 2)


KEPT = [
    mine(
        forward=saves,
        backward=lambda ctx, g: 4 * g * ctx.saved_tensors[0] / (1 + ctx.saved_tensors[0]) ** 2,
    ),
    mine(forward=sets, backward=lambda ctx, g: 4 * g * ctx.e / (1 + ctx.e) ** 2),
    type("Mine", (Elsewhere,), {}),
    mine(
        forward=lambda ctx, x: setattr(ctx, "m", x > 0) or x * ctx.m,
        backward=lambda ctx, g: g * ctx.m,
    ),
]
SECOND = {
    "hvp": lambda y, x: sg.hvp(y, x, AT),
    "hessian": sg.hessian,
    "jvp of grad": lambda y, x: sg.jvp(sg.grad(y, x), x, AT),
    "grad of grad": lambda y, x: sg.grad(sg.sum(sg.grad(y, x)), x),
    "jacobian of grad": lambda y, x: sg.jacobian(sg.grad(y, x), x, mode="reverse"),
    "jvp of grad of grad": lambda y, x: sg.jvp(sg.grad(sg.sum(sg.grad(y, x)), x), x, AT),
}
AROUND = {
    "alone": lambda f, x: f(x),
    "composed": lambda f, x: f(sg.exp(x)),
    "squared": lambda f, x: f(x) ** 2,
    "vmap": lambda f, x: sg.vmap(f)(sg.stack([x, 2 * x])),
    "checkpoint": lambda f, x: sg.checkpoint(f)(x),
    "vmap of checkpoint": lambda f, x: sg.vmap(sg.checkpoint(f))(sg.stack([x, 2 * x])),
}


@each("own", KEPT, ids=["saved", "attribute", "elsewhere", "mask"])
@each("around", AROUND)
@each("second", SECOND)
def test_no_second_derivative_whatever_is_kept(own, around, second):
    x = leaf()
    y = sg.sum(AROUND[around](own.apply, x))
    with pytest.raises(sg.GradientError, match=r"Mine\.(forward|backward): it works on arrays"):
        SECOND[second](y, x)


def test_a_second_derivative_by_something_else_passes():
    x, w = leaf(), sg.placeholder("w", 3)
    y = sg.sum(KEPT[0].apply(x) * w**2)
    close(sg.compile([x, w], sg.hessian(y, w))(AT, AT), np.diag(2 * np.tanh(AT)))
