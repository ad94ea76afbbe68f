"""The house: who may import whom, and what no file may do. See the map in symgrad/README.md."""

import ast
import builtins
import dis
import re
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType

import networkx as nx
import pytest

from symgrad.ir.op import REGISTRY
from symgrad.ops.copied import is_own, own_functions
from tests.helpers import each

ROOT = Path(__file__).parent.parent
# From the ground up; those of one line stand beside each other and import neither.
FLOORS = (
    ("symgrad.ir",), ("symgrad.analysis",), ("symgrad.ops",), ("symgrad.rewrite",),
    ("symgrad.rules",), ("symgrad.passes",),
    ("symgrad.autodiff", "symgrad.lowering", "symgrad.native"),
    ("symgrad.runtime",), ("symgrad.backends",), ("symgrad.compiler",),
    ("symgrad.distributed", "symgrad.dtypes", "symgrad.export", "symgrad.fft", "symgrad.linalg",
     "symgrad.random", "symgrad.sparse", "symgrad.special"),
    ("symgrad.proof", "symgrad.solve", "symgrad.stats"),
    ("symgrad.testing",), ("symgrad.nn",), ("symgrad.optim", "symgrad.train"),
    ("symgrad.sklearn",), ("symgrad",), ("symgrad_viz",), ("symgrad.display",),
    ("symgrad.doctor", "symgrad.play"), ("symgrad.cli",), ("symgrad.__main__",),
)  # fmt: skip
# What is imported on first use, and the one package part that imports it.
LAZY = {
    "networkx": "symgrad.ir", "hashlib": "symgrad.ir", "difflib": "symgrad.ir",
    "scipy": "symgrad.ops", "concurrent": "symgrad.runtime",
    "graphviz": "symgrad_viz", "pygraphviz": "symgrad_viz",
    "matplotlib": "symgrad.train", "tqdm": "symgrad.train", "llvmlite": "symgrad.native",
    "pyarrow": "symgrad.distributed",
    "jax": "symgrad.backends", "onnx": "symgrad.export",
}  # fmt: skip
# What takes long to import, and few programs need: a function may import it, too.
SLOW = (
    "json.",
    "pathlib.",
    "random.",
    "zipfile.",
    "symgrad.ir.formats.",
    "symgrad.lowering.",
    "symgrad.ops.",
    "symgrad.passes.",
    "symgrad.runtime.inspect.",
    "symgrad.runtime.standalone.",
    "symgrad.native.",
    "symgrad.backends.",
    "symgrad.play.",
)
MUTABLE = ("dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque")
# Who reads source, which is that of code of this process: a line in a graph is text.
READERS = {"symgrad.ir.origin", "symgrad.ops.copied", "symgrad.runtime.executable", "symgrad.cli"}
READERS |= {"symgrad.play.worker"}
# These import by a call: what draws, public names, and rules, when they are asked for.
DOORS = ("symgrad.display", "symgrad.__init__", "symgrad.rules.__init__")
# The registry, ONNX's words and tables of intervals go by names of ops; files hold them.
OP_NAME = re.compile(r"(\b|_)ops?(\[[^\]]*\])?\.name$")
BY_NAME = (
    "symgrad.ir.op.",
    "symgrad.ir.formats.",
    "symgrad.export.",
    "symgrad.proof.",
    "symgrad.ops.ranges.",
    "symgrad.rewrite.late.",
    "symgrad.runtime.inspect.enclosure.",
    "symgrad.runtime.inspect.intervals.",
)
LONGEST = 420


def floor(module):
    """The number of a module's floor, and the part of the house that it belongs to."""
    parts = {part: i for i, line in enumerate(FLOORS) for part in line}
    found = max((p for p in parts if f"{module}.".startswith(f"{p}.")), key=len)
    return parts[found], found


def walk(tree):
    """All nodes of a tree, as of `ast.walk`, in a third of its time."""
    found = [tree]
    for node in found:
        for value in vars(node).values():
            if isinstance(value, list):
                found += [v for v in value if isinstance(v, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@lru_cache(maxsize=1)  # asked for twice of each module
def parsed(source):
    """All nodes of a module's tree, which is the first."""
    return walk(ast.parse(source))


@cache
def imports(source, module):
    """Every import: the node, the module's full name, and whether it is inside a function."""
    package = module if module.endswith("__init__") else module.rpartition(".")[0]
    nodes = parsed(source)
    inside, found = set(), []
    for node in nodes:
        if node in inside or isinstance(node, FUNCTIONS):
            inside.update(ast.iter_child_nodes(node))
    for node in nodes:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] + "." if node.level else ""
            origin = (base + (node.module or "")).strip(".")
            names = [f"{origin}.{a.name}" if node.module is None else origin for a in node.names]
            if origin in ("symgrad", "symgrad.ir"):
                names = [f"{origin}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
            names = [a.value for a in node.args[:1] if isinstance(a, ast.Constant)] or ["?"]
        found += [(node, name, node in inside) for name in names]
    return found


def _called(call):
    function = call.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def import_faults(module, source):
    level, part = floor(module.removesuffix(".__init__"))
    for node, name, inside in imports(source, module):
        top = name.split(".")[0]
        if module in DOORS and (isinstance(node, ast.Call) or name in DOORS):
            continue
        if name == "?":
            yield node, "imports what only a run will tell"
        elif top == "viz":
            yield node, "imports the folder viz; the package is symgrad_viz"
        elif top == "linecache" and module not in READERS:
            yield node, "reads source: ask Location.around, which knows whether there is any"
        elif top == "pickle":
            yield node, "imports pickle"
        elif top in LAZY and not (inside and part == LAZY[top]):
            yield node, f"imports {top}: only {LAZY[top]} does, in a function"
        elif inside and top not in LAZY and not f"{name}.".startswith(SLOW):
            yield node, f"imports {name} inside a function"
        elif top in ("symgrad", "symgrad_viz"):
            other, others_part = floor(name)
            if other > level or (other == level and others_part != part):
                yield node, f"imports {name}, which is not below it"


def private_faults(nodes):
    """Names with a leading underscore that are another file's, imported or read."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            for alias in node.names:
                if alias.name.startswith("_") and not alias.name.startswith("__"):
                    yield node, f"imports {alias.name}, which is private to another file"
    own = {n.name for n in nodes if isinstance(n, ast.FunctionDef)} | {"_replace", "_fields"}
    own |= {n.target.id for n in nodes if isinstance(n, ast.AnnAssign) and hasattr(n.target, "id")}
    read = [n for n in nodes if isinstance(n, ast.Attribute) and re.match("_[^_]", n.attr)]
    mine = [n for n in read if getattr(n.value, "id", "") in ("self", "cls", "sys")]
    own.update(n.attr for n in mine)
    for node in read:
        if node not in mine and node.attr not in own:
            yield node, f"reads {node.attr}, which is private to another file"


def name_faults(module, nodes):
    """Ops that are told by their names: in comparisons, keys, cases, look-ups and prefixes."""
    nodes = () if f"{module}.".startswith(BY_NAME) else nodes
    ops = {*_assigned(nodes, re.compile(r"\bop$"))}
    by_alias = re.compile(rf"{OP_NAME.pattern}|^({'|'.join(ops) or 'op'})\.name$")
    names = {*_assigned(nodes, by_alias)}
    for node in nodes:
        asked = []
        if isinstance(node, ast.Compare):
            asked = [node.left, *node.comparators]
            asked += [a.value for a in asked if isinstance(a, (ast.NamedExpr, ast.Subscript))]
        elif isinstance(node, (ast.Match, ast.Subscript)):
            asked = [node.subject if isinstance(node, ast.Match) else node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            table, method = node.func.value, node.func.attr
            if method in ("get", "pop", "setdefault") and ast.unparse(table) != "REGISTRY.ops":
                asked = node.args[:1]
            elif method in ("startswith", "endswith"):
                asked = [table]
        for text in map(ast.unparse, asked):
            if by_alias.search(text) or text in names:
                yield node, f"tells an op by {text}: compare ops, as tanh.op, or ask for a fact"


def _assigned(nodes, wanted):
    """The variables to which expressions of this form are assigned."""
    for node in nodes:
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value:
            if isinstance(targets[0], ast.Name) and wanted.search(ast.unparse(node.value)):
                yield targets[0].id


def habit_faults(nodes, lines):
    tree = nodes[0]
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "print":
                yield node, "prints"
        if isinstance(node, (ast.Attribute, ast.Name, ast.alias)):
            name = getattr(node, "attr", None) or getattr(node, "id", None) or node.name
            if name in ("environ", "getenv", "putenv", "environb"):
                yield node, "reads the environment"
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and _is_table(node):
            yield node, "keeps a table at module level; only the op registry is one"
        named = isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")
        overload = named and any("overload" in ast.unparse(d) for d in node.decorator_list)
        if named and not overload and not ast.get_docstring(node):
            yield node, f"{node.name} has no docstring"
    if not ast.get_docstring(tree):
        yield tree, "the module has no docstring"
    if lines > LONGEST:
        yield tree, f"has {lines} lines, more than {LONGEST}"


def _is_table(node):
    """Whether it binds something that can change, and does not say by its type that it will not."""
    if isinstance(node, ast.AnnAssign):
        constant = ast.unparse(node.annotation).startswith(("Mapping[", "Sequence["))
    else:
        constant = ast.unparse(node.targets[0]) == "__all__"
    displays = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
    called = isinstance(node.value, ast.Call) and _called(node.value) in MUTABLE
    return not constant and (called or isinstance(node.value, displays))


def faults(module, source):
    """What is wrong with a module, a line each."""
    nodes = parsed(source)
    found = [*import_faults(module, source), *habit_faults(nodes, source.count("\n"))]
    found += [*private_faults(nodes), *name_faults(module, nodes)]
    if module == "symgrad.__main__":
        # NO_COLOR is how a user asks a terminal's programs for no colours.
        found = [(node, text) for node, text in found if text != "reads the environment"]
    return [f"{module}:{getattr(node, 'lineno', 1)}: {text}" for node, text in found]


def modules():
    for base, package in ((ROOT, "symgrad"), (ROOT / "viz", "symgrad_viz")):
        for path in sorted((base / package).rglob("*.py")):
            yield ".".join(path.relative_to(base).with_suffix("").parts), path


@each(("module", "path"), modules(), parts=4)
def test_the_house_is_in_order(module, path):
    source = path.read_text(encoding="utf-8")
    text = ast.get_docstring(parsed(source)[0]) or ""
    files = {p.name for p in path.parent.glob("*.py")} - {"__init__.py"}
    assert [*faults(module, source), *guide_faults(module, text, files)] == []


def test_what_is_imported_on_first_use_has_one_importer():
    found = {name: [] for name in LAZY}
    for module, path in modules():
        for _, name, _ in imports(path.read_text(encoding="utf-8"), module):
            if name.split(".")[0] in found:
                found[name.split(".")[0]].append(module)
    # Kernels are copied into programs one by one, and import what they need.
    found["scipy"] = [m for m in found["scipy"] if not m.endswith("kernels")]
    assert all(len(set(importers)) <= 1 for importers in found.values()), found


@pytest.mark.parametrize("folder", ["benchmarks", "examples", "tests", "tools"])
def test_nothing_beside_the_house_imports_private_names(folder):
    files = [*(ROOT / folder).rglob("*.py")]
    trees = [(f.name, ast.parse(f.read_text("utf-8"))) for f in files]
    found = [(name, text) for name, tree in trees for _, text in private_faults(walk(tree))]
    assert files
    assert [(name, text) for name, text in found if text.startswith("imports")] == []


def test_type_checkers_are_seldom_told_to_look_away():
    found = [m for m, path in modules() if "# type: ignore" in path.read_text("utf-8")]
    lines = sum(path.read_text("utf-8").count("# type: ignore") for _, path in modules())
    assert lines < 12, found


def test_viz_is_a_folder_and_no_package():
    assert not (ROOT / "viz" / "__init__.py").exists()


def guide_faults(module, text, files):
    """Where a docstring says another floor than the house has, or leaves out files of its folder.

    The docstring of a package names all of its `files`, or none.
    """
    said = re.match(r"Floor (\d+):", text)
    level = floor(module.removesuffix(".__init__"))[0] + 1
    if said and int(said[1]) != level:
        yield f"{module} stands on floor {level}, not {said[1]}"
    named = set(re.findall(r"`(\w+\.py)`", text))
    if gone := named - files:
        yield f"{module} names {sorted(gone)}, which are not beside it"
    if module.endswith("__init__") and named and (left := files - named):
        yield f"{module} leaves out {sorted(left)}"


def test_a_docstring_of_another_floor_or_of_other_files_is_found():
    (wrong,) = guide_faults("symgrad.ir.__init__", "Floor 2: graphs, in `op.py`.", {"op.py"})
    assert wrong == "symgrad.ir.__init__ stands on floor 1, not 2"
    gone, left = guide_faults("symgrad.ir.__init__", "See `old.py`.", {"op.py"})
    assert "names ['old.py']" in gone
    assert "leaves out ['op.py']" in left


def test_the_map_has_every_room_on_its_floor():
    text = (ROOT / "symgrad" / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) ([^|]*) \|", text, re.MULTILINE)
    said = {n: int(level) for level, row in rows for n in re.findall(r"`(\w+)(?:/|\.py)`", row)}
    has = {p.split(".")[1]: i + 1 for i, line in enumerate(FLOORS) for p in line if "symgrad." in p}
    top = {"display", "doctor", "play", "cli", "__main__"}
    assert said == {name: level for name, level in has.items() if name not in top}


def test_every_room_has_a_floor_of_its_own():
    """What is new in the folder of the package would else stand under the roof."""
    rooms = {p.stem for p in (ROOT / "symgrad").iterdir() if p.is_dir() or p.suffix == ".py"}
    has = {part.split(".")[1] for line in FLOORS for part in line if "symgrad." in part}
    assert rooms - {"__init__", "__pycache__"} == has


def test_what_is_called_by_name_is_there():
    """A file calls by name what stands above it: no import tells of a misspelt one."""
    called = re.compile(r"(?<![\w.])call\(\s*\"(\w+)\"")
    names = {n for m, path in modules() for n in called.findall(path.read_text("utf-8"))
             if m.startswith("symgrad.") and not m.startswith("symgrad.native.")}  # fmt: skip
    assert "place" in names
    assert {n for n in names if n not in REGISTRY.functions and n not in REGISTRY.builders} == set()


def global_names(code):
    """The names that a function takes from outside itself, its inner functions included."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return found.union(*map(global_names, inner))


OWN = {f for op in REGISTRY.every().values() if is_own(op.kernel) for f in own_functions(op.kernel)}


@each("function", sorted(OWN, key=lambda f: f.__name__))
def test_a_kernel_needs_nothing_but_numpy_its_arguments_and_its_neighbours(function):
    neighbours = {f.__name__ for f in own_functions(function)} - {function.__name__}
    found = global_names(function.__code__)
    assert {n for n in found if not hasattr(builtins, n)} <= {"np", *neighbours}
    assert function.__closure__ is None


def test_no_two_kernels_have_one_name():
    names = [f.__name__ for f in OWN]
    assert len(set(names)) == len(names)


DOC = '"""A module."""\n'


@each(
    ("module", "source", "words"),
    [
        ("symgrad.ir.node", "import symgrad.ops.shape", "not below"),
        ("symgrad.ir.node", "from symgrad.analysis import reach", "not below"),
        ("symgrad.ir.node", "import symgrad", "not below"),
        ("symgrad.ir.node", "from symgrad import testing", "not below"),
        ("symgrad.ir.node", "from ..ops import shape", "not below"),
        ("symgrad.rules.masks", "from symgrad.passes.cse import merge", "not below"),
        ("symgrad.lowering.plan", "from symgrad.autodiff import reverse", "not below"),
        ("symgrad.rewrite.rule", "from symgrad.autodiff import reverse", "not below"),
        ("symgrad.ir.late", "from symgrad import display", "not below"),
        ("symgrad.runtime.program", "from symgrad.display import render", "not below"),
        ("symgrad.testing.gradients", "from symgrad.nn import Module", "not below"),
        ("symgrad.nn.layers", "from symgrad import optim", "not below"),
        ("symgrad.nn.layers", "import symgrad", "not below"),
        ("symgrad.fft", "from symgrad.linalg import det", "not below"),
        ("symgrad_viz.dot", "from symgrad import display", "not below"),
        ("symgrad.lowering.plan", "import symgrad_viz", "not below"),
        (
            "symgrad.runtime.program",
            "def f(store):\n    'd'\n    store._cells",
            "reads _cells",
        ),
        ("symgrad.runtime.codegen", "import symgrad.compiler", "not below"),
        ("symgrad.nn.layers", "import symgrad_viz.dot", "not below"),
        ("symgrad.ops.shape", "def f():\n    'd'\n    import math", "inside a function"),
        ("symgrad.passes", "f = lambda: import_module('symgrad.runtime.inspect.why')", "not below"),
        ("symgrad.ops.shape", "f = lambda: __import__('math')", "inside a function"),
        ("symgrad.ops.shape", "x = import_module('symgrad.compiler')", "not below"),
        ("symgrad.ops.shape", "x = import_module(name)", "only a run will tell"),
        ("symgrad.ir.networks", "import networkx", "in a function"),
        ("symgrad.analysis", "def f():\n    'd'\n    import networkx", "in a function"),
        ("symgrad.ops.special.gamma", "from scipy import special", "in a function"),
        ("symgrad_viz.dot", "import graphviz", "in a function"),
        ("symgrad.compiler", "import pickle", "pickle"),
        ("symgrad_viz.words", "import linecache", "reads source"),
        ("symgrad.compiler", "from pickle import dumps", "pickle"),
        ("symgrad_viz.dot", "import viz.symgrad_viz", "the folder viz"),
        ("symgrad.compiler", "print(3)", "prints"),
        ("symgrad.compiler", "import os\nos.environ.get('X')", "environment"),
        ("symgrad.compiler", "from os import getenv", "environment"),
        ("symgrad.rules.masks", "from symgrad.ops.shape import _astype", "private to another"),
        ("symgrad.rules.masks", "from symgrad.ops.shape import _astype as cast", "private"),
        (
            "symgrad.rules.masks",
            "from symgrad.ops import shape\nshape._astype(x)",
            "private to another",
        ),
        ("symgrad.rules.masks", "lambda x: x.op.name == 'tanh'", "tells an op"),
        ("symgrad.rules.masks", "lambda x: 'tanh' != x.inputs[0].op.name", "tells an op"),
        ("symgrad.rules.masks", "lambda ops: ops[0].name in ('add', 'subtract')", "tells an op"),
        ("symgrad_viz.scene", "lambda op: LOOKS[op.name]", "tells an op"),
        ("symgrad_viz.scene", "lambda x: LOOKS.get(x.op.name)", "tells an op"),
        ("symgrad.rules.masks", "lambda x: x.op.name.startswith('arc')", "tells an op"),
        ("symgrad.rules.masks", "name = x.op.name\nlambda: name == 'tanh'", "tells an op"),
        ("symgrad.rules.masks", "name: str = x.op.name\nlambda: name == 'tanh'", "tells an op"),
        ("symgrad.rules.masks", "lambda: (n := x.op.name) == 'tanh'", "tells an op"),
        ("symgrad.rules.masks", "o = x.op\nlambda: o.name == 'tanh'", "tells an op"),
        ("symgrad.rules.masks", "lambda x: x.op.name[:3] == 'arc'", "tells an op"),
        ("symgrad.rules.masks", "lambda node_op: node_op.name == 'tanh'", "tells an op"),
        (
            "symgrad.lowering.lower",
            "match x.op.name:\n    case 'reshape':\n        1",
            "tells an op",
        ),
        ("symgrad.compiler", "CACHE = {}", "table"),
        ("symgrad.compiler", "SEEN: set[int] = set()", "table"),
        ("symgrad.compiler", "NAMES = [n for n in 'ab']", "table"),
        ("symgrad.compiler", "from collections import defaultdict\nD = defaultdict(list)", "table"),
        ("symgrad.compiler", "def f(): pass", "f has no docstring"),
        ("symgrad.compiler", "class C: pass", "C has no docstring"),
        ("symgrad.compiler", "\n" * LONGEST, "lines"),
    ],
)
def test_a_planted_fault_is_found(module, source, words):
    assert faults(module, DOC) == []
    (found,) = faults(module, f"{DOC}{source}\n")
    assert words in found


def test_a_module_without_a_docstring_is_found():
    assert faults("symgrad.compiler", "x = 1\n") == [
        "symgrad.compiler:1: the module has no docstring"
    ]


@each(
    ("module", "source"),
    [
        ("symgrad.ir.node", "from symgrad.ir.dims import Dim\nfrom symgrad.ir import late"),
        ("symgrad.ops.shape", "from symgrad.ir.node import Node"),
        ("symgrad.passes", "from symgrad.rewrite import rule\nfrom symgrad.rules import masks"),
        ("symgrad.__init__", "from symgrad.compiler import compile\nfrom symgrad import nn"),
        ("symgrad_viz.render", "import symgrad\nfrom symgrad.lowering.plan import Plan"),
        ("symgrad.ir.networks", "def f():\n    'd'\n    import networkx"),
        ("symgrad.ir.formats.reading", "def f():\n    'd'\n    import json"),
        ("symgrad.runtime.program", "def f():\n    'd'\n    import symgrad.runtime.inspect.why"),
        ("symgrad.display", "x = import_module('symgrad_viz')"),
        ("symgrad.__init__", "def f(name):\n    'd'\n    return import_module(name)"),
        ("symgrad_viz.dot", "def f():\n    'd'\n    return import_module('graphviz')"),
        ("symgrad_viz.theme", "LOOKS: Mapping[str, int] = {}"),
        ("symgrad.ir.op", "lambda self, op: op.name in self.ops"),
        ("symgrad.ir.formats.text", "lambda op: NAMES[op.name]"),
        ("symgrad.rules.masks", "lambda x, y: x.op is y.op and x.name == y.name"),
        ("symgrad.compiler", "__all__ = ['compile']\nNAMES = ('a',)\nF = frozenset({1})"),
    ],
)
def test_what_is_allowed_is_no_fault(module, source):
    assert faults(module, f"{DOC}{source}\n") == []


def circles(sources):
    """The circles of imports among modules, those of types included, that leave one folder.

    `sources` holds each module's text by its name. A folder is a package without those inside it.
    """
    edges = []
    for module, source in sources.items():
        for node, name, _ in imports(source, module):
            inner = [f"{name}.{a.name}" for a in getattr(node, "names", ())]
            for other in [x for x in inner if x in sources] or [name]:
                found = other if other in sources else f"{other}.__init__"
                if found in sources and found != module:
                    edges.append((module, found))
    loops = nx.strongly_connected_components(nx.DiGraph(edges))
    return [sorted(c) for c in loops if len({m.rpartition(".")[0] for m in c}) > 1]


def test_no_circle_of_files_leaves_a_folder():
    listed = [*modules(), *((f"benchmarks.{p.stem}", p) for p in ROOT.glob("benchmarks/*.py"))]
    sources = {module: path.read_text(encoding="utf-8") for module, path in listed}
    assert len(sources) > 200
    assert circles(sources) == []


def test_a_planted_circle_is_found():
    door = "from symgrad.ops import shape\n"
    low = {"symgrad.ir.a": "import symgrad.ir.b", "symgrad.ir.b": "from symgrad.ir import a"}
    assert circles(low) == []
    assert circles({**low, "symgrad.ir.b": door, "symgrad.ops.shape": "import symgrad.ir.b"}) == [
        ["symgrad.ir.b", "symgrad.ops.shape"]
    ]
    typed = "if TYPE_CHECKING:\n    from symgrad.ir.b import B"
    assert circles({**low, "symgrad.ir.b": door, "symgrad.ops.shape": typed}) != []


def test_no_run_leaves_a_file_beside_the_project():
    known = {".md", ".toml", ".cff", ".yaml", ""}
    assert [p.name for p in ROOT.iterdir() if p.is_file() and p.suffix not in known] == []
