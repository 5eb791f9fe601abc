"""The page in a real browser: run, scrub, split, push, reload, export, two tabs, a restarted server."""

import os
import re
import shutil
import subprocess
import sys
import time

import pytest
from running import TOKEN, lab

import understudy as us

pytest.importorskip("starlette", reason="the lab's packages are not installed")
pytest.importorskip("uvicorn", reason="the lab's packages are not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")

WAIT = 150_000  # milliseconds: a cold, busy machine compiles for a minute
SMALL = '{"teacher":{"kind":"angles","angles":[0,2]},"students":1}'


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
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
    context = browser.new_context(viewport={"width": 1280, "height": 850}, accept_downloads=True)
    opened, wrong = context.new_page(), []
    opened.on("request", lambda r: re.match(r"(http|ws)://127\.0\.0\.1|data:|blob:", r.url) or wrong.append(r.url))
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.set_default_timeout(WAIT)
    yield opened
    context.close()
    assert not wrong


def fragment(text):
    import base64

    return "#q=" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def ended(page):
    """Wait for the end of a run; returns (kind, label, loss)."""
    page.wait_for_selector("#stop[disabled]")
    verdict = page.locator("#verdict[data-kind]:not(.empty)")
    verdict.wait_for()
    return tuple(verdict.get_attribute(f"data-{name}") for name in ("kind", "label", "loss"))


def test_a_student_is_watched_to_its_verdict(page, address):
    begun = time.perf_counter()
    page.goto(address)
    page.locator("#vectors svg").wait_for()
    picture = time.perf_counter() - begun
    kind, label, loss = ended(page)
    assert (kind, label) == ("minimum", "3-copy-1-average")
    assert float(loss) == pytest.approx(0.072452645204, abs=1e-10)
    assert "copies" in page.inner_text("#neurons")
    assert "averages" in page.inner_text("#neurons")
    first = page.evaluate("() => window.lab.firstFrame")
    drawn, before = page.evaluate("() => window.lab.player.drawn"), time.perf_counter()
    page.locator("#play").click()
    page.wait_for_timeout(1500)
    rate = (page.evaluate("() => window.lab.player.drawn") - drawn) / (time.perf_counter() - before)
    print(f"first picture after {picture:.2f} s, first step after {first / 1000:.2f} s, {rate:.0f} frames per second")


def test_time_can_be_scrubbed_and_stepped(page, address):
    page.goto(address + fragment(SMALL))
    ended(page)
    page.locator("#scrub").fill("0")
    assert page.inner_text("#now") == "t = 0"
    page.locator("#forward").click()
    assert page.inner_text("#now") != "t = 0"
    page.locator("body").press("End")
    last = page.inner_text("#now")
    page.locator("body").press("ArrowLeft")
    assert page.inner_text("#now") != last


def test_a_neuron_is_split_and_the_point_pushed_and_the_link_gives_the_same_run(page, address):
    page.goto(address + fragment(SMALL))
    _, _, first = ended(page)
    page.locator("[data-split='0']").click()
    page.locator("#neurons tr").nth(2).wait_for()
    _, _, split = ended(page)
    assert float(split) == pytest.approx(float(first), rel=1e-6)
    page.locator("[data-push]").first.click()
    page.wait_for_timeout(200)
    _, _, pushed = ended(page)
    assert float(pushed) <= float(split) * (1 + 1e-9)
    link = page.evaluate("() => location.href")
    page.goto("about:blank")
    page.goto(link)
    assert float(ended(page)[2]) == pytest.approx(float(pushed), rel=1e-12)


def test_bad_input_gets_a_sentence_and_the_page_goes_on(page, address):
    page.goto(
        address
        + fragment(
            '{"activation":"quadratic","teacher":{"kind":"orthonormal","count":2,"dim":2},"students":1,'
            '"start":{"kind":"gaussian","std":100,"seed":0}}'
        )
    )
    page.locator("#stop[disabled]").wait_for()
    page.locator("input[name=students]").fill("999")
    page.evaluate("() => document.getElementById('question').noValidate = true")
    page.locator("#run").click()
    page.locator("#complaint", has_text="students").wait_for()
    page.locator("input[name=students]").fill("1")
    page.locator("select[name=activation]").select_option("erf")
    page.locator("input[name=std]").fill("0.1")
    page.locator("input[name=count]").fill("2")
    page.locator("input[name=dim]").fill("2")
    page.locator("#run").click()
    assert ended(page)[0] == "minimum"
    assert page.locator("#complaint").is_hidden()


def test_a_damaged_link_is_told(page, address):
    page.goto(address + "#q=damaged")
    page.locator("#complaint", has_text="damaged").wait_for(timeout=20_000)


def test_two_tabs_share_the_machine(page, address):
    other = page.context.new_page()
    other.set_default_timeout(WAIT)
    for tab in (page, other):
        tab.goto(address + fragment(SMALL))
    assert ended(page) == ended(other)


def test_many_seeds_are_dots_and_a_click_shows_one(page, address):
    page.goto(address + fragment(SMALL))
    ended(page)
    page.locator("input[name=many]").fill("3")
    page.locator("#try-seeds").click()
    page.locator("circle[data-seed='2']").wait_for()
    page.locator("circle[data-seed='2']").click()
    page.wait_for_timeout(200)
    ended(page)
    assert page.locator("input[name=seed]").input_value() == "2"


@pytest.mark.thorough
def test_exported_python_and_command_give_the_same_loss(page, address, tmp_path):
    page.goto(address + fragment('{"teacher":{"kind":"orthonormal","count":3,"dim":4},"students":2}'))
    _, _, loss = ended(page)
    page.locator("#export summary").click()
    with page.expect_download() as download:
        page.locator("#save-python").click()
    script = tmp_path / "repeat.py"
    download.value.save_as(script)
    environment = {**os.environ, "UNDERSTUDY_CACHE": os.environ.get("UNDERSTUDY_TEST_CACHE", str(tmp_path))}
    told = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=environment)
    assert float(told.stdout.split()[0]) == pytest.approx(float(loss), rel=1e-12)
    page.locator("#save-command").click()
    words = page.locator("#exported", has_text="understudy fit").inner_text().split()
    told = subprocess.run(
        [sys.executable, "-m", *words, "--json"], capture_output=True, text=True, check=True, env=environment
    )
    assert str(float(loss))[:14] in told.stdout
    with page.expect_download() as download:
        page.locator("#save-nc").click()
    download.value.save_as(tmp_path / "run.nc")
    assert us.open(tmp_path / "run.nc")[0].loss == pytest.approx(float(loss), rel=1e-12)
    for button in ("#save-svg", "#save-png", "#save-json", "#save-npz"):
        with page.expect_download() as download:
            page.locator(button).click()
        assert os.path.getsize(download.value.path()) > 200


@pytest.mark.thorough
def test_the_page_survives_a_restart_of_the_server(page):
    with lab() as (address, process):
        port = int(re.search(r":(\d+)/", address).group(1))
        page.goto(address + fragment(SMALL))
        ended(page)
        process.kill()
        page.locator("#status", has_text="lost").wait_for()
    with lab(port):
        page.locator("#status", has_text="Ready").wait_for()
        page.locator("#run").click()
        page.wait_for_timeout(200)
        assert ended(page)[0] == "minimum"
    assert TOKEN in address
