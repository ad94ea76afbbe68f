"""Twenty steps of each optimiser, beside those of torch.optim; see make_reference.py."""

import json
from pathlib import Path

import numpy as np

import symgrad as sg
from tests.helpers import each

REFERENCE = json.loads(Path(__file__).with_name("reference.json").read_text(encoding="utf-8"))
X, Y, *START = (np.array(a) for a in REFERENCE["start"].values())
MADE = {
    "cosine": {"lr": sg.optim.cosine(0.3, 20, end=0.01)},
    "step": {"lr": sg.optim.step_decay(0.3, 4, factor=0.5)},
    "warm_up": {"lr": sg.optim.warm_up(5, 0.3)},
    "clip_norm": {"lr": 0.3, "clip_norm": 0.5},
    "clip_value": {"lr": 0.3, "clip_value": 0.1},
}


@each(("dtype", "rtol"), [("float64", 1e-6), ("float32", 1e-4)])
@each("name", REFERENCE["cases"])
def test_twenty_steps_are_those_of_torch(name, dtype, rtol):
    case = REFERENCE["cases"][name]
    options = case.get("options", {"momentum": 0.5, **MADE.get(name, {})})
    if "history_size" in options:
        options["history"] = options.pop("history_size")
    w, b, v = (sg.variable(n, a.astype(dtype)) for n, a in zip("wbv", START, strict=True))
    optimizer = getattr(sg.optim, case.get("optimizer", "SGD"))([w, b, v], **options)
    x, y = sg.placeholder("x", X.shape, dtype), sg.placeholder("y", Y.shape, dtype)
    loss = sg.nn.mse_loss(sg.tanh(x @ w + b) @ v, y)
    step = sg.compile([x, y], loss, updates=optimizer.updates(loss))
    losses = [float(step(X.astype(dtype), Y.astype(dtype))) for _ in case["losses"]]
    np.testing.assert_allclose(losses, case["losses"], rtol=rtol)
    for p, after in zip((w, b, v), case["after"], strict=True):
        assert p.value.dtype == dtype
        np.testing.assert_allclose(p.value, after, rtol=rtol, atol=rtol / 1000)
