"""A lab, a browser and a page for the tests of the lab."""

import re

import pytest
from running import lab


@pytest.fixture(scope="module")
def browser():
    from browsing import CHROMIUM
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        found = running.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield found
        found.close()


@pytest.fixture(scope="module")
def address():
    with lab() as (found, _):
        yield found


@pytest.fixture
def page(browser):
    """A page that fails the test for script errors and for any request that leaves the machine."""
    from browsing import WAIT

    context = browser.new_context(viewport={"width": 1280, "height": 850}, accept_downloads=True)
    opened, wrong = context.new_page(), []
    opened.on("request", lambda r: re.match(r"(http|ws)://127\.0\.0\.1|data:|blob:", r.url) or wrong.append(r.url))
    opened.on("websocket", lambda w: re.match(r"ws://127\.0\.0\.1", w.url) or wrong.append(w.url))
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.set_default_timeout(WAIT)
    yield opened
    context.close()
    assert not wrong
