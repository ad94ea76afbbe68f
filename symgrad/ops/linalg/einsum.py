"""Einstein's summation: made of permutations, products and sums, in the cheapest order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from itertools import combinations, dropwhile
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir.dims import Size, guess, product
from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import require_equal
from symgrad.ops.declare import NodeLike, composite
from symgrad.ops.linalg.products import matmul
from symgrad.ops.reduce import sum
from symgrad.ops.shape import permute_dims, reshaped

MOST_SEARCHED = 7
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Term(NamedTuple):
    """An array with a label for each axis."""

    node: Node
    labels: tuple[str, ...]

    @property
    def sizes(self) -> dict[str, Size]:
        """The size of each label."""
        return dict(zip(self.labels, self.node.shape, strict=True))

    def ordered(self, labels: Sequence[str]) -> Node:
        """The array with its axes in another order."""
        axes = tuple(map(self.labels.index, labels))
        return self.node if axes == tuple(range(len(axes))) else permute_dims(self.node, axes)

    def summed(self, kept: Collection[str]) -> Term:
        """With the axes of labels that are not kept summed over."""
        axes = tuple(i for i, s in enumerate(self.labels) if s not in kept)
        if not axes:
            return self
        total = sum(self.node, axis=axes, dtype=self.node.dtype)
        return Term(total, tuple(s for s in self.labels if s in kept))


@composite(numpy=(np.einsum,), widens=True)
def einsum(subscripts: Any, /, *operands: NodeLike) -> Node:
    """Products summed over the letters that the result does not have, as NumPy's einsum.

    Without `->` the result has the letters that occur once, in alphabetical order. A letter twice
    in one operand is its diagonal; `...` stands for further axes, which broadcast. Three operands
    and more are multiplied, and summed on the way, in the order that takes the fewest operations,
    as by NumPy's `optimize=True`: where there are infinities, another order may have other NaNs.

    >>> einsum("ij,jk->ik", placeholder("a", (2, 3)), placeholder("b", (3, 4))).type
    float64[2, 4]

    Numbers may stand for the letters, as in `einsum(a, [0, 1], b, [1, 2], [0, 2])`.
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _as_text((subscripts, *operands))
    nodes = [as_node(x) for x in operands]
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    words = left.split(",")
    if len(words) != len(nodes):
        raise ShapeError(f"{subscripts!r} names {len(words)} operands, not {len(nodes)}")
    terms = [Term(x, _labels(w, x.ndim)) for w, x in zip(words, nodes, strict=True)]
    every = [s for t in terms for s in t.labels]
    dots = sorted({s for s in every if s.startswith(".")}, reverse=True)
    once = sorted(s for s in {*every} if every.count(s) == 1 and s not in dots)
    wanted = _result_labels(right, dots) if arrow else (*dots, *once)
    if {*wanted} - {*every} or len({*wanted}) < len(wanted):
        raise ShapeError(f"the result of {subscripts!r} has letters of the operands, each once")
    whole = contracted(_fitted([_diagonals(t) for t in terms]), wanted)
    return whole.summed(wanted).ordered(wanted)


def _as_text(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The text and the operands of what is written with lists of numbers, as NumPy's letters."""
    count = len(given) // 2
    lists = [*given[1 : 2 * count : 2], *given[2 * count :]]
    if not count or not all(isinstance(part, (list, tuple)) for part in lists):
        raise ShapeError(
            'einsum takes a text such as "ij,jk->ik", then as many arrays; or arrays, after each a '
            "list of numbers, and that of the result"
        )
    words = ["".join(map(_letter, part)) for part in lists]
    return "->".join([",".join(words[:count]), *words[count:]]), given[: 2 * count : 2]


def _letter(number: Any) -> str:
    if number is Ellipsis:
        return "..."
    if not isinstance(number, (int, np.integer)) or not 0 <= number < 2 * len(LETTERS):
        raise ShapeError(f"an axis is a number from 0 to 51, or ..., not {number!r}")
    return (LETTERS.upper() + LETTERS)[number]


def _labels(word: str, ndim: int) -> tuple[str, ...]:
    """A label for each axis: letters, and `.0`, `.1`, … counted from the last of an ellipsis."""
    before, dots, after = word.partition("...")
    letters = before + after
    if not (letters == "" or (letters.isalpha() and letters.isascii())):
        raise ShapeError(f"{word!r} is not made of letters and one '...'")
    rest = ndim - len(letters)
    if rest < 0 or (rest and not dots):
        raise ShapeError(f"{word!r} names {len(letters)} axes of {ndim}")
    return (*before, *(f".{i}" for i in range(rest)[::-1]), *after)


def _result_labels(word: str, dots: Sequence[str]) -> tuple[str, ...]:
    before, found, after = word.partition("...")
    return (*before, *dots, *after) if found else tuple(word)


def _diagonals(term: Term) -> Term:
    """A term in which no label occurs twice."""
    if len({*term.labels}) == len(term.labels):
        return term
    from symgrad.ops.linalg.solve import diagonal

    node, labels = term
    while again := next((s for s in labels if labels.count(s) > 1), None):
        first = labels.index(again)
        second = labels.index(again, first + 1)
        require_equal(node.shape[first], node.shape[second])
        node = diagonal(node, axis1=first, axis2=second)
        rest = (s for i, s in enumerate(labels) if i not in (first, second))
        labels = (*rest, again)
    return Term(node, labels)


def _fitted(terms: Sequence[Term]) -> list[Term]:
    """Terms that agree on sizes: an axis of size 1 that others have longer is left out."""
    sizes: dict[str, Size] = {}
    for t in terms:
        for label, size in t.sizes.items():
            if size != 1 and sizes.setdefault(label, size) != size:
                require_equal(sizes[label], size)
    fitted = []
    for t in terms:
        kept = {s: n for s, n in t.sizes.items() if n != 1 or s not in sizes}
        fitted.append(Term(reshaped(t.node, tuple(kept.values())), tuple(kept)))
    return fitted


# ---- products -------------------------------------------------------------------------------


def contracted(terms: Sequence[Term], wanted: Sequence[str]) -> Term:
    """The product of terms, summed over what is not wanted.

    Of two all products are made before any is summed, as NumPy does: else `inf * (1 - 1)` would be
    NaN where it is `inf - inf`, and the other way round. Of more terms, what is in one alone is
    summed first, and they are multiplied in the order of the fewest operations; of very many the
    cheapest pairs first.
    """
    terms = list(terms)
    if len(terms) > 2:
        count = Counter(s for t in terms for s in t.labels)
        terms = [t.summed({*wanted, *(s for s in t.labels if count[s] > 1)}) for t in terms]
    while len(terms) > 1:
        i, j = _next_pair(terms, wanted)
        x, y = terms[i], terms.pop(j)
        others = (s for k, t in enumerate(terms) if k != i for s in t.labels)
        if len(terms) == 1 and _order(x, y, wanted) > _order(y, x, wanted):
            x, y = y, x
        terms[i] = multiplied(x, y, {*wanted, *others})
    return terms[0]


def _order(x: Term, y: Term, wanted: Sequence[str]) -> list[int]:
    """The places in the result of the axes of a product."""
    return [wanted.index(s) for s in dict.fromkeys((*x.labels, *y.labels)) if s in wanted]


def _next_pair(terms: Sequence[Term], wanted: Collection[str]) -> tuple[int, int]:
    """Two terms to multiply first."""
    count = len(terms)
    sizes = {s: guess(n) for t in terms for s, n in t.sizes.items()}

    def labels(group: frozenset[int]) -> frozenset[str]:
        inside = {s for k in group for s in terms[k].labels}
        outside = {s for k in range(count) if k not in group for s in terms[k].labels}
        return frozenset(inside & ({*wanted} | outside))

    def steps(one: frozenset[int], other: frozenset[int]) -> int:
        total = 1
        for s in labels(one) | labels(other):
            total *= sizes[s]
        return total

    @cache
    def best(group: frozenset[int]) -> tuple[int, tuple[int, ...]]:
        """The fewest operations for a group, and the pair of terms to begin with."""
        if len(group) < 3:
            return (steps(*(frozenset({k}) for k in group)) if len(group) == 2 else 0), (*group,)
        found = []
        first, *rest = sorted(group)
        for n in range(len(rest)):
            for chosen in combinations(rest, n):
                one = frozenset({first, *chosen})
                cost, pair = best(one)
                more, second = best(group - one)
                pair = pair if len(pair) == 2 else second
                found.append((cost + more + steps(one, group - one), pair))
        return min(found)

    if count <= MOST_SEARCHED:
        pair = best(frozenset(range(count)))[1]
    else:
        pair = min(combinations(range(count), 2), key=lambda p: steps(*(frozenset({k}) for k in p)))
    i, j = sorted(pair)
    return i, j


def multiplied(x: Term, y: Term, needed: Collection[str]) -> Term:
    """The product of two terms, summed over what is not needed: of matrices, if that can be."""
    batch = [s for s in x.labels if s in y.labels and s in needed]
    inner = [s for s in x.labels if s in y.labels and s not in needed]
    rows = [s for s in x.labels if s not in y.labels]
    columns = [s for s in y.labels if s not in x.labels]
    labels = (*batch, *rows, *columns)
    if not inner or not (rows or columns):
        whole = (*labels, *inner)
        return Term(_spread(x, whole) * _spread(y, whole), whole).summed(needed)
    sizes = {**x.sizes, **y.sizes}
    lead, m, k, n = ([sizes[s] for s in group] for group in (batch, rows, inner, columns))
    a = reshaped(x.ordered([*batch, *rows, *inner]), (*lead, product(m), product(k)))
    b = reshaped(y.ordered([*batch, *inner, *columns]), (*lead, product(k), product(n)))
    return Term(reshaped(matmul(a, b), (*lead, *m, *n)), labels).summed(needed)


def _spread(x: Term, labels: Sequence[str]) -> Node:
    """The array with its axes in the order of labels, size 1 where it has none, but in front."""
    sizes = x.sizes
    own = x.ordered([s for s in labels if s in sizes])
    placed = dropwhile(lambda s: s not in sizes, labels)
    return reshaped(own, [sizes.get(s, 1) for s in placed])
