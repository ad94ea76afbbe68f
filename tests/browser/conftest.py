"""Pages opened in a Chromium as a reader would."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

import symgrad as sg
from tools import chromium as installed

SIZE = {"width": 1400, "height": 900}


def pytest_collection_modifyitems(items):
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker("browser")
            if installed.PATH is None:
                item.add_marker(pytest.mark.skip(reason="there is no Chromium"))


@pytest.fixture(scope="session")
def chromium():
    with sync_playwright() as playwright:
        browser = installed.launched(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def blank_pages():
    """Pages that a test has done with: to make a new one takes longer than most tests do."""
    return []


@pytest.fixture
def opened(chromium, blank_pages):
    """Opens a file; at the end, nothing may have been said on the console or asked of a network."""
    pages, said, asked, addresses = [], [], [], []
    heard = {
        "console": lambda message: said.append(message.text),
        "pageerror": lambda error: said.append(str(error)),
        "dialog": lambda dialog: (said.append(dialog.message), dialog.dismiss()),
        "request": lambda request: asked.append(request.url.partition("#")[0]),
    }

    def open_page(path, state="", scheme="light", page=None):
        """In a page of its own, or in one that is there."""
        if page is None:
            page = blank_pages.pop() if blank_pages else new_page(chromium)
            pages.append(page)
            for event, listener in heard.items():
                page.on(event, listener)
        page.emulate_media(color_scheme=scheme)
        addresses.append(f"{path.as_uri()}{state}")
        page.goto(addresses[-1])
        return page

    yield open_page
    for page in pages:
        for event, listener in heard.items():
            page.remove_listener(event, listener)
        page.goto("about:blank")
        page.set_viewport_size(SIZE)
        page.mouse.move(SIZE["width"] - 1, SIZE["height"] - 1)
    blank_pages.extend(pages)
    assert said == []
    loaded = [url for url in asked if not url.startswith("data:")]
    assert len(loaded) == len(addresses), asked
    assert all(url.startswith("file:") for url in loaded)


def new_page(chromium):
    page = chromium.new_context(viewport=SIZE, offline=True).new_page()
    page.set_default_timeout(10_000)
    return page


def two_layer_net():
    rng = np.random.default_rng(0)
    x = sg.placeholder("x", ("N", 1000), "float32")
    y = sg.placeholder("y", ("N", 10), "float32")
    w1 = sg.variable("w1", rng.standard_normal((1000, 100), dtype="float32"))
    w2 = sg.variable("w2", rng.standard_normal((100, 10), dtype="float32"))
    loss = sg.sum((sg.relu(x @ w1) @ w2 - y) ** 2)
    dw1, dw2 = sg.grad(loss, [w1, w2])
    return sg.compile([x, y], loss, updates={w1: w1 - 1e-6 * dw1, w2: w2 - 1e-6 * dw2})


def deep_net(layers):
    h = x = sg.placeholder("x", ("N", 32), "float32")
    parameters = []
    for i in range(layers):
        with sg.scope(f"layer{i}"):
            w = sg.variable(f"w{i}", np.full((32, 32), 0.1, "float32"))
            b = sg.variable(f"b{i}", np.zeros(32, "float32"))
            parameters += [w, b]
            h = sg.tanh(h @ w + b)
    loss = sg.mean(h**2)
    grads = sg.grad(loss, parameters)
    updates = {p: p - 0.01 * g for p, g in zip(parameters, grads, strict=True)}
    return sg.compile(x, loss, updates=updates)


@pytest.fixture(scope="session")
def net():
    return two_layer_net()


@pytest.fixture(scope="session")
def net_page(net, tmp_path_factory):
    x, y = np.ones((64, 1000), "float32"), np.ones((64, 10), "float32")
    path = tmp_path_factory.mktemp("explorer") / "net.html"
    return net.explore(path, profile=net.profile(x, y, runs=1))


@pytest.fixture(scope="session")
def deep_page(tmp_path_factory):
    """A net of six layers, each a scope."""
    return deep_net(6).explore(tmp_path_factory.mktemp("explorer") / "deep.html")


@pytest.fixture(scope="session")
def big_page(tmp_path_factory):
    """A program of two thousand nodes."""
    program = deep_net(100)
    assert len(program.raw) > 1900
    return program.explore(tmp_path_factory.mktemp("explorer") / "big.html")
