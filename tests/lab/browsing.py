"""What the tests of the page share; importing it skips them where packages are missing."""

import base64
import json
import shutil

import pytest

pytest.importorskip("starlette", reason="the lab's packages are not installed")
pytest.importorskip("uvicorn", reason="the lab's packages are not installed")
pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")

WAIT = 150_000  # milliseconds: a cold, busy machine compiles for a minute
SMALL = {"teacher": {"kind": "angles", "angles": [0, 2]}, "students": 1}


def fragment(question):
    return "#q=" + base64.urlsafe_b64encode(json.dumps(question).encode()).decode().rstrip("=")


def ended(page):
    """Wait for the end of a run; returns (kind, label, loss)."""
    page.wait_for_selector("#stop[disabled]")
    verdict = page.locator("#verdict[data-kind]:not(.empty)")
    verdict.wait_for()
    return tuple(verdict.get_attribute(f"data-{name}") for name in ("kind", "label", "loss"))
