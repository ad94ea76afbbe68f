"""What is NaN in a piece, what a scheduler reads on the way, and files that are damaged."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import symgrad as sg
from symgrad.distributed import worker
from symgrad.distributed.worker import Key, Lent
from symgrad.ir.errors import FeedError
from tests.helpers import each


@each("join", [sg.linalg.vector_norm, sg.sum, sg.prod, sg.max, sg.min])
@each("values", [[np.inf, np.nan], [np.nan, 1, -np.inf], [0, np.inf, np.nan]])
def test_what_is_nan_in_one_piece_is_nan(join, values):
    x = sg.placeholder("x", ("N", 2))
    step = sg.map_reduce([x], [join(x), join(x, axis=0)], over="N")
    whole, columns = step(sg.chunks(x=np.stack([values, np.ones(len(values))], 1), rows=1))
    assert np.isnan(whole)
    np.testing.assert_array_equal(np.isnan(columns), [True, False])


def test_what_is_lent_is_kept_where_it_arrives_though_another_has_read_it_on_the_way():
    array = np.ones(10_000)
    sent = pickle.loads(pickle.dumps(Lent("a" * 32, [array], Key([array]))))
    worker._shelf().kept.clear()
    again = pickle.dumps(sent)
    worker._shelf().kept.clear()
    arrived = pickle.loads(again)
    assert "a" * 32 in worker._shelf().kept
    np.testing.assert_array_equal(arrived.get()[0], array)


@pytest.mark.parametrize("damage", ["cut", "header", "shape", "archive"])
def test_a_damaged_file_is_refused_by_name(tmp_path, damage):
    path = tmp_path / ("x.npz" if damage == "archive" else "x.npy")
    (np.savez if damage == "archive" else np.save)(path, **{
        "x" if damage == "archive" else "arr": np.arange(300.0).reshape(100, 3)
    })  # fmt: skip
    data = path.read_bytes()
    made = {
        "cut": data[:-8],
        "header": data.replace(b"}", b" ", 1),
        "shape": data.replace(b"(100, 3)", b"(-10, 3)"),
        "archive": data[:60] + bytes([data[60] ^ 255]) + data[61:],
    }
    path.write_bytes(made[damage])
    with pytest.raises(FeedError, match=r"x: .*is no array that can be read"):
        sg.chunks(x=path, rows=10)


def test_a_program_without_data_or_with_the_class_of_an_executor_is_told_what_to_write():
    x, w = sg.placeholder("x", "N"), sg.variable("w", 1.0)
    step = sg.map_reduce([x], sg.sum(x * w), {w: w - 1}, over="N")
    with pytest.raises(FeedError, match=r"step\.on\(sg\.chunks"):
        sg.fit(step, epochs=2)
    data = sg.chunks(x=np.ones(4), rows=2)
    with pytest.raises(FeedError, match="an executor has submit"):
        step(data, executor=ThreadPoolExecutor)
    assert w.value == 1
