"""Write the golden files anew: `python -m tests.golden.update`. Review what changed."""

import json
from pathlib import Path

from tests.golden.counts import counts
from tests.golden.stories import texts

FOLDER = Path(__file__).parent


def main():
    """Write every file, and remove those that no story tells any more."""
    wanted = texts()
    for old in FOLDER.glob("*.txt"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    (FOLDER / "counts.json").write_text(json.dumps(counts(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
