"""Writes reference.json: what some of PyTorch's layers make of random numbers, in float64.

`python tests/nn/make_reference.py`, where PyTorch is installed.
"""

import json
from pathlib import Path

import torch
from torch import nn


def plain(value):
    """Tensors as lists, in lists and dicts."""
    if isinstance(value, torch.Tensor):
        return value.detach().numpy().tolist()
    if isinstance(value, dict):
        return {name: plain(v) for name, v in value.items()}
    return [plain(v) for v in value]


def cells():
    """The weights, an input, a state and the next state of each cell."""
    for make in (nn.RNNCell, nn.GRUCell, nn.LSTMCell):
        cell, x, state = make(3, 4), torch.randn(2, 3), [torch.randn(2, 4)]
        if make is nn.LSTMCell:
            state.append(torch.randn(2, 4))
        found = cell(x, tuple(state) if len(state) > 1 else state[0])
        next_state = found if isinstance(found, tuple) else [found]
        yield make.__name__, {**cell.state_dict(), "x": x, "state": state, "next": next_state}


def main():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    found = dict(cells())
    layer, x, z = (
        nn.MultiheadAttention(8, 2, batch_first=True),
        torch.randn(2, 3, 8),
        torch.randn(2, 5, 8),
    )
    nn.init.normal_(layer.in_proj_bias)
    nn.init.normal_(layer.out_proj.bias)
    found["attention"] = {**layer.state_dict(), "x": x, "context": z, "y": layer(x, z, z)[0]}
    causal = nn.Transformer.generate_square_subsequent_mask(3)
    found["attention"]["causal"] = layer(x, x, x, attn_mask=causal)[0]
    norm, batches = nn.BatchNorm2d(3), torch.randn(3, 4, 3, 2, 2)
    nn.init.normal_(norm.weight)
    ys = [norm(b) for b in batches]
    found["norm"] = {"x": batches, "y": ys, **norm.state_dict(), "eval": norm.eval()(batches[0])}
    del found["norm"]["num_batches_tracked"]
    layer, x = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2), torch.randn(2, 4, 5, 5)
    found["transposed"] = {**layer.state_dict(), "x": x, "y": layer(x)}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(plain(v))}" for name, v in found.items())
    made = json.dumps(f"{Path(__file__).name}, with torch {torch.__version__}")
    text = f'{{"made": {made},\n{lines}}}\n'
    Path(__file__).with_name("reference.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
