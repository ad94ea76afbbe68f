"""What is done with a mutant, and what must not come of it."""

import io
import json
import math
import re
import sys
import tokenize
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

import symgrad as sg
from symgrad import display
from symgrad.ir.dims import evaluate
from symgrad.ir.errors import SymgradError
from symgrad.ir.formats import saved
from symgrad.ir.node import Variable
from symgrad_viz import render
from tests.mutants.mutate import MARK, hostile_lines
from tests.mutants.seeds import as_text

ROOT = Path(__file__).parents[2]
MOST_BYTES = 2**26  # of a plan that is run: larger ones say so, and are left alone
MOST_STEPS = 10_000
MOST_FLOPS = 1e9
SIZES = 3
CALLS = ("open", "__import__", "eval", "exec")
LOOKING = ("load", "verify", "again")  # what only reads: nothing may take much memory there
# What Python's own parsers say of a text that is none of theirs.
EXPECTED = (SyntaxError, ValueError, RecursionError)
WATCHED = frozenset({
    "open", "exec", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn",
    "os.spawn", "os.fork", "socket.__new__", "socket.connect", "ctypes.dlopen", "pickle.find_class",
    "os.rename", "os.remove", "os.mkdir", "os.chmod", "os.symlink", "os.truncate", "shutil.rmtree",
    "code.__new__", "builtins.input", "webbrowser.open", "urllib.Request", "os.listdir",
    "os.scandir", "os.link", "os.mkfifo", "os.kill",
})  # fmt: skip


class Guard:
    """An audit hook that notes events which do not belong, while it is `on`."""

    def __init__(self, folder):
        self.folder, self.on, self.found = str(folder), False, []
        self.homes = tuple({str(ROOT), sys.prefix, sys.base_prefix, *map(str, sys.path[1:])} - {""})
        # What is imported at first use is not kept as bytecode: that would be an event of its own.
        sys.dont_write_bytecode = True
        sys.addaudithook(self.heard)

    def heard(self, event, args):
        if self.on and event in WATCHED and not self.belongs(event, args):
            self.found.append(f"{event}{args!r:.200}")

    def belongs(self, event, args):
        if event == "exec":
            return args[0].co_filename.startswith(("<symgrad", "<string>", *self.homes))
        if event in ("os.listdir", "os.scandir"):  # a file that is written clears what was left
            return str(args[0]).startswith((self.folder, *self.homes))
        if event in ("open", "os.rename", "os.remove", "os.chmod", "code.__new__"):
            path = str(args[0])
            if isinstance(args[0], int) or path.startswith(self.folder):
                return "canary" not in path
            if path == "<unknown>":  # Python looks for the line of what it cannot parse
                return True
            reads = event == "open" and (args[1] in ("r", "rb") or args[2] & 3 == 0)
            return event == "open" and reads and path.startswith((*self.homes, "/proc/", "/sys/"))
        return False


class Page(HTMLParser):
    """The elements of a page with what they have of the mutant's."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, _ in attrs:
            assert MARK not in name, f"the attribute {name}"
        assert MARK not in tag, f"the element {tag}"
        assert not any(n.startswith("on") for n, _ in attrs), attrs

    def handle_comment(self, data):
        assert MARK not in data, "a comment"


def check_source(text):
    """No text of a mutant stands in source but in comments, strings, and a name by itself."""
    if not any(word in text for word in (MARK, "canary", *CALLS)):
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.COMMENT, tokenize.STRING, tokenize.NAME):
            assert MARK not in token.string, f"in the source: {token.string!r}"
        if token.type == tokenize.NAME:
            assert "canary" not in token.string or re.fullmatch(r"\w{,42}", token.string)
            assert token.string not in CALLS, "a call"


def check_svg(data):
    """It is XML, without scripts and handlers."""
    for element in ET.fromstring(data).iter():
        assert MARK not in element.tag
        assert not element.tag.endswith("script")
        assert not any(MARK in k or k.startswith("on") for k in element.attrib)


def attack(parts, rng, folder, form, shows):
    """Do all that is done with a graph; the stage at which it was refused, or "ran".

    Whatever else than a `SymgradError` comes out of it is a fault, and goes on to the caller.
    """
    stage = "load"
    try:
        if form == "text":
            graph = sg.Graph.parse(as_text(parts))
        else:
            path = folder / "mutant.json"
            document = {"lines": hostile_lines(rng), "graphs": parts}
            if form == "old":
                body = {"format": saved.FORMAT, "version": 1, **document}
                path.write_text(json.dumps(body), encoding="utf-8")
            else:
                path.write_text(saved.sealed(document), encoding="utf-8")
            graph = sg.Graph.load(path)
        stage = "verify"
        graph.verify()
        stage = "again"
        again(graph, folder)
        for options in ({"passes": ()}, {}, {"backend": "reference"}):
            stage = f"compile {options}"
            inputs = [n for n in graph.inputs if not isinstance(n, Variable)]
            program = sg.compile(inputs, list(graph.outputs), **options)
            stage = f"look {options}"
            check_source(program.source)
            str(program.plan), str(program.cost()), repr(program)
            stage = f"call {options}"
            called(program, graph)
        stage = "save_source"
        sizes = dict.fromkeys(program.executables.names, SIZES)
        source = program.save_source(folder / "mutant.py", **sizes)
        check_source(source.read_text(encoding="utf-8"))
        text = source.read_text(encoding="utf-8")
        exec(compile(text, "<symgrad mutant>", "exec"), {"__name__": "mutant"})
        if shows:
            stage = "show"
            show(program, graph, folder)
    except SymgradError as error:
        str(error)
        if stage not in LOOKING:
            return stage
        cause = error.__cause__ or error.__context__
        # A reader that ran out of memory took it: the limit is for that.
        if isinstance(cause, MemoryError) and not isinstance(cause, SymgradError):
            raise cause from error
        hidden = cause is not None and not isinstance(cause, (SymgradError, *EXPECTED))
        return f"{stage} ({type(cause).__name__})" if hidden else stage
    return "ran"


def again(graph, folder):
    """What can be read can be written, and is the same when it is read again."""
    path, plain = graph.save(folder / "again.json"), {"full": True, "origins": False}
    # As text: of an attribute that is NaN no two graphs are equal.
    loaded, text = sg.Graph.load(path), graph.text(full=True)
    assert loaded.text(full=True) == text, "it is another graph when it is loaded again"
    parsed = sg.Graph.parse(text).text(**plain)
    assert parsed == graph.text(**plain), "it is another graph as text"
    str(graph), repr(graph), hash(graph)


def called(program, graph):
    """Call it with small arrays, if its plan is small."""
    sizes = dict.fromkeys(program.executables.names, SIZES)
    shapes = [[evaluate(s, sizes) for s in n.shape] for n in graph.inputs]
    if any(not 0 <= s <= MOST_BYTES for shape in shapes for s in shape):
        return
    if sum(map(math.prod, shapes)) > MOST_BYTES // 16:
        return
    plan = program.executables.shown(sizes).plan
    cost = program.cost(**sizes).after
    if plan.peak_bytes + cost.bytes_moved > MOST_BYTES or cost.flops > MOST_FLOPS:
        return
    if sum(step.times for step in plan.steps) > MOST_STEPS:
        return
    rng = np.random.default_rng(0)
    feeds = []
    for node, shape in zip(graph.inputs, shapes, strict=True):
        array = np.asarray(rng.uniform(0, 3, shape)).astype(node.dtype)
        if isinstance(node, Variable):
            node.value = array
        else:
            feeds.append(array)
    program(*feeds)


def show(program, graph, folder):
    """Every picture, page, story and message."""
    check_svg(program.render(folder / "mutant.svg", engine="layers").read_bytes())
    check_svg(display.story(program, folder / "story.svg").read_bytes())
    program.render(folder / "mutant.dot")
    for picture in (render(graph, engine="layers"), render(program, engine="layers")):
        check_svg(str(picture))
    text = program.explore(folder / "mutant.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.tags.count("script") == text.count("<script"), "scripts"
    assert text.count("<script") == text.count("</script"), "an element that was ended"
    assert text.lower().count("<script") == COUNT_OF_SCRIPTS, "another script"
    for bundle in map(display.mimebundle, (program.plan, program.trace)):
        if "image/svg+xml" in bundle:
            check_svg(bundle["image/svg+xml"])
        if "text/html" in bundle:
            assert "script" not in Page(bundle["text/html"]).tags
    str(program.trace)
    for node in graph.outputs[:2]:
        str(program.why(node))


COUNT_OF_SCRIPTS = 2
