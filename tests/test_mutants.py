"""A sample of the mutants of `tests/mutants`; `python -m tests.mutants` runs as many as wanted."""

import random

import pytest

import symgrad as sg
from symgrad.ir.op import REGISTRY
from tests.mutants.__main__ import campaign
from tests.mutants.attack import Guard, Page, attack, check_source, check_svg
from tests.mutants.mutate import KINDS_OF, mutated, systematic
from tests.mutants.seeds import documents

DRAWN = 400


@pytest.fixture(scope="module")
def seeds():
    return list(documents())


def test_nothing_comes_of_a_mutant(seeds):
    planted = len(list(systematic(seeds)))
    faults, stages = campaign(planted + DRAWN, 1, seed=1)
    assert not faults, faults[:3]
    assert sum(stages.values()) == planted + DRAWN
    # Neither are all refused at the door, nor do all get through.
    assert stages["load"] > DRAWN // 10
    assert stages["ran"] > DRAWN // 10


def test_code_is_planted_in_every_attribute(seeds):
    nodes = [n for _, parts in seeds for graph in parts for n in graph["nodes"]]
    attributes = {(n["op"], k) for n in nodes for k, v in n["attrs"].items() if len(v) <= 500}
    planted = list(systematic(seeds))
    assert len(planted) > 10 * len(attributes)
    assert {form for _, _, form, _ in planted} == {"saved", "text"}
    texts = {
        n["op"]: n["attrs"]["index"]
        for _, parts, _, _ in planted
        for graph in parts
        for n in graph["nodes"]
        if "and None" in n["attrs"].get("index", "")
    }
    assert texts.keys() >= {"slice", "place", "put"}


def test_every_op_that_a_file_holds_is_mutated(seeds):
    known = {n["op"] for _, parts in seeds for graph in parts for n in graph["nodes"]}
    held = {n for n, op in REGISTRY.every().items() if not op.opaque}
    assert held - known <= UNHELD, sorted(held - known)


UNHELD = {"custom"}  # differentiated by Python code, which no file holds


@pytest.mark.parametrize("kind", KINDS_OF)
def test_each_kind_of_mutation_changes_something(kind, seeds):
    rng = random.Random(kind)
    known = seeds[::10]
    others = [n for _, parts in known for g in parts for n in g["nodes"]]
    changed = 0
    for _, parts in known:
        for _ in range(30):
            found, made = mutated(parts, others, rng, fits=False)
            changed += made == kind and found != parts
    assert changed


@pytest.mark.parametrize("source", ["x = zqx + 1.0 @ open('f')", "f(open)", "__import__('os')"])
def test_planted_code_is_found(source):
    with pytest.raises(AssertionError):
        check_source(source)


def test_what_a_program_may_say_of_a_mutant_is_no_fault():
    check_source("zqx = 'zqx'  # zqx; open('f')")


def test_a_planted_element_is_found():
    with pytest.raises(AssertionError):
        check_svg(b"<svg><script/></svg>")
    with pytest.raises(AssertionError):
        check_svg(b'<svg><g onload="f()"/></svg>')
    with pytest.raises(AssertionError):
        Page('<p onclick="f()">')
    with pytest.raises(AssertionError):
        Page("<!-- zqx -->")


def test_a_graph_that_nobody_changed_runs(tmp_path, seeds):
    for name, parts in seeds:
        if "compiled" in name:
            assert attack(parts, random.Random(0), tmp_path, "saved", True) == "ran"
            assert attack(parts, random.Random(0), tmp_path, "text", False) == "ran"
            break


def test_events_that_do_not_belong_are_told_from_those_that_do(tmp_path):
    belongs = Guard.belongs
    guard = object.__new__(Guard)
    guard.folder, guard.homes = str(tmp_path), (sg.__path__[0],)
    code = compile("1", "<symgrad program 1>", "exec")
    for event, args, expected in (
        ("open", (f"{tmp_path}/x", "w", 0), True),
        ("open", (f"{sg.__path__[0]}/x.py", "r", 0), True),
        ("open", (f"{sg.__path__[0]}/x.py", "w", 1), False),
        ("open", ("/etc/passwd", "r", 0), False),
        ("open", (f"{tmp_path}/canary_zqx", "r", 0), False),
        ("os.remove", ("/etc/passwd", -1), False),
        ("os.system", ("true",), False),
        ("exec", (code,), True),
        ("exec", (code.replace(co_filename="mutant"),), False),
        ("subprocess.Popen", ("sh", [], None, None), False),
    ):
        assert belongs(guard, event, args) is expected, (event, args)
