"""Every name of the standard is there, and is called as the standard says."""

import inspect

import symgrad as sg
from tests.conformance.names import CONSTANTS, DTYPES, NAMES, both
from tests.helpers import each

KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD


@each("name", NAMES)
def test_a_function_is_called_as_the_standard_says(name):
    ours, theirs = (inspect.signature(f).parameters for f in both(name))
    for parameter in theirs.values():
        mine = ours[parameter.name]
        assert mine.kind in (parameter.kind, EITHER if parameter.kind is KEYWORD_ONLY else None)
        if parameter.default is not parameter.empty:
            # What the reference marks as not given is None in the standard.
            wanted = parameter.default
            assert mine.default == (None if type(wanted).__name__ == "Undef" else wanted)
    positional = [p.name for p in theirs.values() if p.kind is not KEYWORD_ONLY]
    assert list(ours)[: len(positional)] == positional
    more = [p for p in ours.values() if p.name not in theirs]
    assert all(p.default is not p.empty and p.kind is KEYWORD_ONLY for p in more)


@each("name", [*CONSTANTS, *DTYPES])
def test_a_constant_or_dtype_is_there(name):
    assert name in dir(sg)
    assert hasattr(sg, name)
