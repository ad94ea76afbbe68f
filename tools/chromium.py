"""A Chromium that is already on the machine, for the tests of pages and the check of the site."""

from __future__ import annotations

import os
import shutil

from playwright.sync_api import Browser, Playwright

# The first of Debian's packages that is there. The one without windows takes less time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")
PATH = next(filter(None, map(shutil.which, NAMES)), None)


def launched(playwright: Playwright) -> Browser:
    """A browser without windows. Its sandbox is off for root, whom it would refuse."""
    root = getattr(os, "geteuid", lambda: 1)() == 0
    return playwright.chromium.launch(
        executable_path=PATH,
        args=[
            "--in-process-gpu",
            "--renderer-process-limit=1",
            "--disable-extensions",
            *["--no-sandbox"] * root,
        ],
    )
