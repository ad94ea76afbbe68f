"""Looks at the built site in a browser: `python -m docs.site.check [part of a name]`.

Each page, wide and light, then narrow and dark: nothing is asked of the network, nothing is wider
than the screen, and axe finds nothing serious where there are no large tables. Then the search
finds what users look for.
"""

import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

from tools import chromium

BUILT = Path(__file__).parents[1] / "_build" / "html"
SCREENS = ((1280, "light"), (390, "dark"))
MOST_ELEMENTS = 4000  # that axe looks at: the tables that have more are rows of one kind
SOUGHT = ("relu", "checkpoint", "NaN", "GPU", "ShapeError")


class Server(ThreadingHTTPServer):
    """Bears that a browser, whose page is closed, no longer listens."""

    def handle_error(self, *_: Any) -> None:
        return


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: Any) -> None:
        return


def pages(part: str) -> list[str]:
    """The pages, but of the reference, whose pages are alike, only some."""
    names = (str(p.relative_to(BUILT)) for p in sorted(BUILT.rglob("*.html")))
    return [n for n in names if part in n and "/functions-" not in n and "genindex" not in n]


def faults(page: Page, name: str, home: str) -> list[str]:
    """What is wrong with a page on this screen."""
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.url))
    page.goto(home + name)
    found = [f"asks for {url}" for url in asked if not url.startswith((home, "data:"))]
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    found += [f"{wide} pixels too wide"] * (wide > 0)
    broken = page.evaluate(
        "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
    )
    found += [f"no picture {source}" for source in broken]
    if page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS:
        for fault in Axe().run(page).response["violations"]:
            if fault["impact"] in ("serious", "critical"):
                found.append(f"{fault['id']}: {fault['nodes'][0]['html'][:100]}")
    return found


def searched(page: Page, home: str, word: str) -> list[str]:
    """The titles that the search gives for a word."""
    page.goto(f"{home}search.html?q={word}")
    page.wait_for_function("document.querySelector('.search-summary')?.innerText.includes('ound')")
    page.wait_for_selector("ul.search li a")
    return page.locator("ul.search li > a").all_inner_texts()


def main(part: str = "") -> int:
    """How many faults there are; they are printed."""
    server = Server(("127.0.0.1", 0), partial(Quiet, directory=str(BUILT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home, told = f"http://127.0.0.1:{server.server_port}/", []
    with sync_playwright() as driver:
        browser = chromium.launched(driver)
        for width, scheme in SCREENS:
            screen = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme
            )
            for name in pages(part):
                page = screen.new_page()
                told += [f"{name}, {width} {scheme}: {f}" for f in faults(page, name, home)]
                page.close()
        page = browser.new_page()
        for word in SOUGHT:
            titles = searched(page, home, word)
            print(f"{word}: {len(titles)} found, first {', '.join(titles[:3])}")
            told += [f"the search does not find {word}"] * (not titles)
    print(*told, f"{len(told)} faults on {len(pages(part))} pages", sep="\n")
    return len(told)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) > 0)
