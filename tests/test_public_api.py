"""The public names and signatures are those on record, so that none changes by mistake."""

import difflib

from tools import public_api


def test_a_change_for_users_is_recorded():
    kept = public_api.RECORD.read_text(encoding="utf-8").splitlines()
    found = public_api.text().splitlines()
    changed = [*difflib.unified_diff(kept, found, "recorded", "found", n=0, lineterm="")]
    told = "write the change in CHANGELOG.md, then run: python -m tools.public_api"
    assert not changed, "\n".join([*changed[:30], told])


def test_a_signature_has_names_and_defaults():
    assert "sg.grad(loss, wrt, *, kinks=None, disconnected='raise')" in public_api.text()
