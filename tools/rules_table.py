"""Write the tables of rules anew: `python -m tools.rules_table`. Review what changed."""

import ast
import importlib
import inspect
import pkgutil
import re
from functools import cache
from pathlib import Path

from symgrad import Graph, passes
from symgrad import rules as home
from symgrad.autodiff import normal
from symgrad.ir.formats.infix import to_text
from symgrad.rewrite.driver import rewrite
from symgrad.rewrite.pattern import Applied, Pattern
from symgrad.rewrite.rule import Exact, rules_of
from symgrad.rewrite.trace import Trace, reason_text
from symgrad.testing import spellings

ROOT = Path(__file__).parent.parent
# The page on grades counts the rules by family, and the one beside the rules lists them all.
SHORT, WHOLE = ROOT / "docs" / "lookup" / "grades.md", ROOT / "symgrad" / "rules" / "README.md"
LONGEST = 60
# What a reader of the table does not know: helpers, and questions about nodes.
UNCLEAR = re.compile(r"\b_|\.(inputs|shape|dtype|ndim|attrs)\b")
BEGIN, END = "<!-- rules: begin -->", "<!-- rules: end -->"
RULES = tuple(
    dict.fromkeys(
        (
            *passes.RULES,
            *passes.BY_RANGES,
            *passes.KERNELS,
            *rules_of(home.whole_graph),
            *normal.RULES,
        )
    )
)


def families():
    """The rules by the file that they stand in: its docstring's first line, its name, its rules."""
    for found in pkgutil.walk_packages(home.__path__, "symgrad.rules."):
        module = importlib.import_module(found.name)
        of_module = rules_of(module)
        own = [r for r in RULES if r in of_module]
        if own:
            title = inspect.getdoc(module).splitlines()[0].rstrip(".")
            yield title, found.name.removeprefix("symgrad.rules."), own


def text(pattern):
    """A pattern as an expression."""
    return to_text(pattern, lambda p, depth: None if isinstance(p, Applied) else repr(p))[0]


def change(rule):
    """A rule as `before → after`: its patterns, or where they do not tell, an example."""
    if rule.rewrite is not None:
        after = rule.rewrite.after
        what = text(after) if isinstance(after, Pattern) else body(after)
        if what is not None:
            return f"`{text(rule.rewrite.before)}` → `{what}`"
    for y, inputs in spellings(rule):
        trace = Trace()
        rewrite(Graph([y], inputs), [rule], trace)
        if trace.fired:
            return "e.g. `{}` → `{}`".format(*trace.fired[0].change().split("  ->  "))
    return f"`{text(rule.rewrite.before)}` → …"


@cache
def lambdas(module):
    """All lambdas of a module, as they are written."""
    nodes = ast.walk(ast.parse(inspect.getsource(module)))
    return [n for n in nodes if isinstance(n, ast.Lambda)]


def body(function):
    """The expression of a lambda, as it is written, if it is short."""
    line = function.__code__.co_firstlineno
    found = [n.body for n in lambdas(inspect.getmodule(function)) if n.lineno == line]
    if len(found) != 1:
        return None
    # `y if condition else None` is a guard.
    written = ast.unparse(found[0].body if isinstance(found[0], ast.IfExp) else found[0])
    written = re.sub(r"_p\(", "(", written)  # a primitive by the name of its op
    return None if len(written) > LONGEST or UNCLEAR.search(written) else written


def grade(rule):
    """A rule's grade; `stable` is what is held to the truth, not to what was written."""
    return f"{rule.exact.name.lower()}{', stable' if rule.stable else ''}"


def why(rule):
    """A rule's reason, and the rule of which it is made."""
    made_of = (f" Twin of `{other.name}`." for other in RULES if rule in other.twins)
    return reason_text(rule) + next(made_of, "")


def row(*cells):
    """A row of a table."""
    return f"| {' | '.join(str(c).replace('|', chr(92) + '|') for c in cells)} |"


def counts():
    """How many rules of each family there are at each grade."""
    names = [g.name.lower() for g in Exact]
    lines = [row("rules", *(f"`{n}`" for n in names), "for example")]
    lines.append("|---" + "|--:" * len(names) + "|---|")
    for title, _, rules in families():
        grades = [rule.exact for rule in rules]
        numbers = [grades.count(g) or "" for g in Exact]
        lines.append(row(title.partition(":")[0], *numbers, change(example(rules))))
    grades = [rule.exact for rule in RULES]
    lines.append(row(f"**{len(RULES)}**", *(f"**{grades.count(g)}**" for g in Exact), ""))
    return lines


def example(rules):
    """A rule that shows what a family is about: one whose pattern tells all, in few signs."""
    return min(rules, key=lambda r: ("e.g." in change(r), abs(len(change(r)) - LONGEST)))


def listed():
    """All rules, family by family."""
    for title, name, rules in families():
        yield from ("", f"## {title}", "", f"`{name.replace('.', '/')}.py`", "")
        yield from (row("rule", "grade", "what it does", "why"), "|---|---|---|---|")
        for rule in rules:
            yield row(f"`{rule.name}`", grade(rule), change(rule), why(rule))


def updated(readme, lines, begin=BEGIN, end=END):
    """The text of a page with these lines between the marks."""
    head, rest = readme.split(begin)
    return "\n".join([head + begin, "", *lines, "", end + rest.split(end)[1]])


def texts():
    """The two files as they should be."""
    both = ((SHORT, counts()), (WHOLE, listed()))
    return {p: updated(p.read_text(encoding="utf-8"), lines) for p, lines in both}


def write(texts):
    """Write pages, by their paths."""
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(texts())
