"""Mutations of saved graphs: each changes one thing; most are then made to fit together again."""

import ast
import marshal
import random

from symgrad.ir.errors import SymgradError
from symgrad.ir.formats.saved import SavedReader, parse_type, syntax
from symgrad.ir.formats.text import type_text
from symgrad.ir.graph import Graph
from symgrad.ir.op import REGISTRY
from tests.mutants.seeds import LINES

MARK = "zqx"  # is in every text that a mutant brings, and in nothing of symgrad
# Python that would leave a trace if anything ran it; a worker forbids the file.
CODE = "open('canary_zqx', 'w')"
BREAKS = (
    CODE, f"({CODE} and None", f"'); {CODE} #", f'"""); {CODE} #', f"0)\n{CODE}\n(", f"]; {CODE} #",
    f"{{{CODE}}}", "__import__('os').system('touch canary_zqx')", f"lambda: {CODE}",
    f"#\n{CODE}", f"\r{CODE}", f"\u2028{CODE}", f"\\\n{CODE}", "zqx</script><script>zqx()</script>",
    "zqx--><!--", "zqx*/", "zqx]]>", '"zqx onload="zqx()', "zqx\ud800", "zqx\0", "zqx\x1b[31m",
    "zqx&lt;", "zqx{0}%s", "zqx" * 400, "canary_zqx/../x", "zqx\u202e", "${zqx}", "zqx\ufffe",
)  # fmt: skip
# In the place of a part of an attribute: the code itself, as text, and what is nearly right.
PLANTED = (repr(f"{CODE} and None"), repr(f"0], {CODE}, x[0"), CODE, "1.5", "True", "None")
NAMES = (
    *BREAKS, "self", "path", "__class__", "out", "scratch", "dtype", "where", "order", "axis", "_0",
    "k_0", "fused", "start", "share", "rows", "step", "np", "class", "", "x", "zqx",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 3, 7, 63, 64, 65, 100, 999, 10**5, 10**9, 9999999999, 2**31, 2**32, 2**53, 2**62,
    2**63 - 1, 2**63, 2**64, 10**30, -2, -7, -(2**31), -(2**63), -(10**30), 0.5, 1.0, -0.0, 1e-300,
    1e308, True, False, None, 1j,
)  # fmt: skip
DTYPES = (
    "bool", "int8", "int32", "int64", "uint8", "uint64", "float16", "float32", "float64",
    "longdouble", "complex64", "complex128", "clongdouble",
)  # fmt: skip
SIZES = (*map(str, (0, 1, 2, 3, 5, 17, 10**4, 10**9, 2**40, 2**62, 2**63, 10**20, -1)),
         "N", "M", "2*N", "N + 1", "N*M", "N - 5", "N**16", "self", "path", "N//2", "(N + 1)//2",
         "min(N, 3)", "max(N - 1, 0)", "min(N, M)//2*min(M, 2)",
         f"min({' + '.join(f'min(a{i}, b{i})' for i in range(12))}, z)",
         "min(" * 30 + "N" + ", M)//2" * 30)  # fmt: skip
VALUES = (
    *map(repr, NUMBERS), "nan", "inf", "-inf", *DTYPES, "N", "2*N", "N*M - 7", "graph0", "kept(0)",
    "()", "((),)", "(0,)", "(1, 0)", "(-1,)", "(0, 0)", "(0, 1, 2)", "(None,)", "(True,)", "(N,)",
    "(2**70,)", "((0, 1, 1),)", "((0, 2, 1), (0, 1, 1))", "((None, None, -1),)", "((0, 9, 0),)",
    "((1,),)", "...", "b'zqx'", "''", "'zqx'", "'left'", "'zero'", "[1]", "{1: 2}", "lambda: 0",
    "array(1.0, float64)", "array([1, 2], int64)", "array('', float32, (0, 1000000000000))",
    "array(nan, float32)", "array([], bool, (0,))", "array('AAAA', int8, (3,))",
    "array('AAAA', int8, (99,))", "array('!', int8, (1,))", "array(1, float32, (1, 1, 1))",
    "(" + "0, " * 100 + ")", "(" * 60 + ")" * 60, "-" * 90 + "1", *(repr(b) for b in BREAKS),
    "1<" * 10**5 + "1", "(" + "1," * 10**5 + ")",
    *(f"(({b!r}, None, 1),)" for b in BREAKS[:6]), *(f"({b!r},)" for b in BREAKS[:3]), CODE,
)  # fmt: skip


def systematic(known):
    """Code in the place of every part of every attribute of every op, and of its name, in turn.

    Gives the name of a document, its parts with the one change, the form, and the kind.
    """
    done = set()
    for name, parts in known:
        for at, graph in enumerate(parts):
            for number, node in enumerate(graph["nodes"]):
                for key, text in node["attrs"].items():
                    if (node["op"], key) in done or len(text) > 500:
                        continue
                    done.add((node["op"], key))
                    for kind, attrs in _with_code(node["attrs"], key, text):
                        nodes = [*graph["nodes"]]
                        nodes[number] = {**node, "attrs": attrs}
                        changed = [*parts]  # the rest is shared: nothing is changed in its place
                        changed[at] = {**graph, "nodes": nodes}
                        for form in ("saved", "text"):
                            yield name, changed, form, kind


def _with_code(attrs, key, text):
    """The attributes of a node with code in one of them, each in turn."""
    tree = ast.parse(text, mode="eval")
    count = sum(map(_is_leaf, ast.walk(tree)))
    for i in range(count):
        for code in PLANTED:
            tree = ast.parse(text, mode="eval")
            leaf = [n for n in ast.walk(tree) if _is_leaf(n)][i]
            spot = _Replace(leaf, ast.parse(code, mode="eval").body)
            yield "planted_value", {**attrs, key: ast.unparse(spot.visit(tree))}
    rest = {k: v for k, v in attrs.items() if k != key}
    yield "planted_name", {**rest, f"{key}={text}, a={CODE}, b": "0"}
    yield "planted_name", {**attrs, f"a={CODE}, b": "0"}
    yield "planted_name", {**rest, f"{key}=({CODE}), {key}": text}


def _is_leaf(tree):
    return isinstance(tree, (ast.Constant, ast.Name))


class _Replace(ast.NodeTransformer):
    """A tree with another one in the place of a part."""

    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, tree):
        return self.new if tree is self.old else super().generic_visit(tree)


def _copied(parts):
    """A copy of dicts, lists, texts and numbers, in a tenth of the time of `deepcopy`."""
    return marshal.loads(marshal.dumps(parts))


def mutated(parts, others, rng, fits):
    """The graphs of a document after one change, and what was changed.

    `others` are nodes of other documents, to take attributes from; if it `fits`, the types after
    the change are those that the type rules give.
    """
    found = _copied(parts)
    graph = rng.choice(found)
    kind = rng.choice(KINDS)
    KINDS_OF[kind](found, graph, rng.choice(graph["nodes"] or [{}]), others, rng)
    if fits:
        refit(found)
    return found, kind


def _value(text, others, rng):
    """Another text for the value of an attribute: near to it, or from anywhere."""
    how = rng.randrange(4)
    if how == 0:
        return rng.choice(VALUES)
    if how == 1:
        attrs = rng.choice(others)["attrs"]
        return rng.choice(list(attrs.values())) if attrs else "0"
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return rng.choice(VALUES)
    spots = [n for n in ast.walk(tree) if isinstance(n, (ast.Constant, ast.Tuple, ast.Name))]
    if not spots or len(text) > 5000:
        return rng.choice(VALUES)
    spot = rng.choice(spots)
    match spot:
        case ast.Tuple(elts=elements) if how == 2 or not elements:
            new = rng.choice((elements[:-1], elements * 2, elements[::-1], [spot], elements[1:]))
            spot.elts = list(new) if spot not in new else [ast.Tuple(list(elements), ast.Load())]
        case ast.Constant(value=int(number)) if how == 2:
            spot.value = number + rng.choice((-1, 1, -2, 2, 10, -number * 2))
        case ast.Constant():
            spot.value = rng.choice((*NUMBERS, *NAMES))
        case ast.Name():
            spot.id = rng.choice((*DTYPES, "N", "M", "nan", "inf", "graph0"))
        case ast.Tuple():
            spot.elts = [ast.Constant(rng.choice(NUMBERS)) for _ in spot.elts]
    return ast.unparse(tree)


def attribute_value(parts, graph, node, others, rng):
    if node and node["attrs"]:
        name = rng.choice(list(node["attrs"]))
        node["attrs"][name] = _value(node["attrs"][name], others, rng)


def every_attribute(parts, graph, node, others, rng):
    node.get("attrs", {}).update(rng.choice(others)["attrs"])


def attribute_name(parts, graph, node, others, rng):
    attrs = node.get("attrs", {})
    name = rng.choice((*NAMES, *(f"{n}=0, {CODE}" for n in attrs), f"a={CODE}, b"))
    how = rng.randrange(3)
    if how and attrs:
        old = rng.choice(list(attrs))
        value = attrs.pop(old)
        if how == 1:
            attrs[name] = value
    else:
        attrs[name] = rng.choice(VALUES)


def operands(parts, graph, node, others, rng):
    if not node:
        return
    before = range(graph["nodes"].index(node))
    inputs = node["inputs"]
    match rng.randrange(8):
        case 0:
            node["inputs"] = inputs[:-1]
        case 1 if len(before):
            inputs.append(rng.choice(before))
        case 2:
            node["inputs"] = inputs[::-1]
        case 3:
            node["inputs"] = (inputs or [0]) * rng.choice((2, 3, 40, 3000))
        case 4:
            inputs.append(rng.choice((-1, len(before), 10**9, True, 0.0, "n0", None)))
        case _ if inputs and len(before):
            inputs[rng.randrange(len(inputs))] = rng.choice(before)


def shape(parts, graph, node, others, rng):
    if not node:
        return
    dtype, _, sizes = node["type"].strip("(),").partition("[")
    shape = [s for s in sizes.rstrip("]").split(", ") if s not in ("", "()")]
    match rng.randrange(6):
        case 0:
            shape.append(rng.choice(SIZES))
        case 1:
            shape = shape[:-1]
        case 2:
            shape = [rng.choice(SIZES) for _ in range(rng.choice((0, 1, 2, 3, 33, 100)))]
        case _ if shape:
            shape[rng.randrange(len(shape))] = rng.choice(SIZES)
    node["type"] = f"{dtype}[{', '.join(shape) or '()'}]"


def dtype(parts, graph, node, others, rng):
    if node:
        node["type"] = f"{rng.choice(DTYPES)}[{node['type'].partition('[')[2]}"


def lines(parts, graph, node, others, rng):
    if node:
        node[rng.choice(("scope", "made_by"))] = [
            rng.choice(NAMES) for _ in range(rng.randrange(4))
        ]
        node["lines"] = [rng.choice((0, 0, 0, 1, 2, 3, 4, -1, 99, True))]


def kinks(parts, graph, node, others, rng):
    if node:
        sides = ("left", "right", "zqx", 0.5, 2, -1e300, None, [], {"relu": "left"}, {CODE: 1}, {})
        node["kinks"] = rng.choice(sides)


def op(parts, graph, node, others, rng):
    if node:
        other = rng.choice(others)
        node["op"] = rng.choice((other["op"], rng.choice(sorted(REGISTRY.every())), *BREAKS[:2]))
        if rng.random() < 0.5:
            node["attrs"] = dict(other["attrs"])


def name(parts, graph, node, others, rng):
    leaves = [n for n in graph["nodes"] if n["op"] in ("placeholder", "variable")]
    if leaves:
        rng.choice(leaves)["attrs"]["name"] = repr(rng.choice(NAMES))


def outputs(parts, graph, node, others, rng):
    count = len(graph["nodes"])
    graph["outputs"] = [rng.randrange(-1, count + 1) for _ in range(rng.choice((0, 1, 2, 5, 200)))]
    if rng.random() < 0.3:
        graph["inputs"] = rng.randrange(-1, count + 1)


def nesting(parts, graph, node, others, rng):
    """Graphs inside of graphs, each of which has the one before it twice."""
    inner = _copied(parts[0])
    takes, wanted = inner["inputs"], [inner["nodes"][i]["type"] for i in inner["outputs"]]
    if len(wanted) != 1 or not takes:
        return
    for _ in range(rng.choice((1, 2, 30))):
        nodes = _copied(inner["nodes"][:takes])
        call = {"op": "fused", "inputs": list(range(takes)), "type": wanted[0]}
        nodes += [{**call, "attrs": {"graph": f"graph{len(parts) - 1}"}} for _ in range(2)]
        parts.append({"nodes": nodes, "inputs": takes, "outputs": [takes + 1]})


CHANGES = (
    attribute_value, every_attribute, attribute_name, operands, shape, dtype, lines, kinks, op,
    name, outputs, nesting,
)  # fmt: skip
KINDS_OF = {change.__name__: change for change in CHANGES}
KINDS = (*KINDS_OF, *["attribute_value"] * 8, *["operands"] * 2, *["shape"] * 2, "attribute_name")


def refit(parts):
    """Give every node the type that its rule gives, so far as the rules like what they see."""
    reader = SavedReader(Graph, (), ())
    for number, graph in enumerate(parts):
        nodes = []
        for record in graph["nodes"]:
            try:
                if record["op"] not in ("placeholder", "variable", "constant"):
                    attrs = {str(k): reader.attr(syntax(v)) for k, v in record["attrs"].items()}
                    types = tuple(nodes[i] for i in record["inputs"])
                    found = REGISTRY.find(record["op"]).check(types, attrs)
                    record["type"] = type_text(found)
                nodes.append(parse_type(record["type"]))
            except Exception:  # a rule is asked about anything
                return
        try:
            reader.bodies[f"graph{number}"] = reader.graph(number, graph, ())
        except SymgradError:
            return


def hostile_lines(rng):
    """Lines of a document, each with the name of a file that is not to be opened."""
    files = ("canary_zqx", "/etc/passwd", "/dev/zero", "canary_zqx/fifo", *BREAKS)
    numbers = (1, 0, 10**9, 2**31 - 1, 3)
    return [[rng.choice(files), rng.choice(numbers), rng.choice(NAMES)] for _ in range(LINES)]


def seeded(seed, number):
    """The random numbers of one mutant."""
    return random.Random(f"{seed} {number}")
