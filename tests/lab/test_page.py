"""The page in a real browser: run, scrub, split, push, reload, two tabs, input that is hard to follow, times.

`test_page_by_hand.py` has what is done with mouse, keys and files; `test_page_and_server.py` exports and restarts.
"""

import time

import pytest
from browsing import SMALL, WAIT, ended, fragment, needs_chromium

pytestmark = needs_chromium


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
    fresh = page.evaluate("() => window.lab.firstStep") / 1000
    page.goto("about:blank")
    page.goto(address)
    ended(page)
    warm = page.evaluate("() => window.lab.firstStep") / 1000
    print(f"first picture {picture:.2f} s after opening; first step {fresh:.2f} s (new server), {warm:.2f} s (warm)")


@pytest.mark.thorough
def test_pictures_move_while_a_larger_flow_runs(page, address):
    teacher = {"kind": "orthonormal", "count": 16, "dim": 17}
    page.goto(address + fragment({"teacher": teacher, "students": 8}))
    page.wait_for_function("() => window.lab.firstStep && window.lab.pictures.frames.length > 1")
    look = "() => [window.lab.player.drawn, performance.now(), window.lab.running !== null && !window.lab.end]"
    (first, begun, _), running = page.evaluate(look), True
    drawn, now = first, begun
    while running:
        page.wait_for_timeout(50)
        found = page.evaluate(look)
        if running := found[2]:
            drawn, now = found[:2]
    rate = 1000 * (drawn - first) / max(now - begun, 1)
    print(f"(16, 8): {rate:.0f} frames per second for {(now - begun) / 1000:.1f} s while the flow runs")
    assert drawn > first


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
    page.wait_for_function("() => window.lab.begin?.part === 2")
    assert ended(page)[2] == pushed


def test_biases_are_shown(page, address):
    page.goto(address + fragment({**SMALL, "bias": "trained"}))
    assert ended(page)[0] == "minimum"
    assert abs(float(page.inner_text("[data-bias='0']").replace("−", "-"))) < 1e-3  # erf is odd
    assert "dotted" in page.locator("#overlaps").inner_text()


def test_input_that_is_hard_to_follow_gets_a_sentence_and_the_page_goes_on(page, address):
    teacher = {"kind": "orthonormal", "count": 2, "dim": 2}
    start = {"kind": "gaussian", "std": 100, "seed": 0}
    page.goto(address + fragment({"activation": "hermite:8", "teacher": teacher, "students": 2, "start": start}))
    ended(page)
    page.locator("#complaint", has_text="smaller start").wait_for()
    page.locator("input[name=students]").fill("999")
    page.evaluate("() => document.getElementById('question').noValidate = true")
    page.locator("#run").click()
    page.locator("#complaint", has_text="students").wait_for()
    page.locator("input[name=students]").fill("1")
    page.locator("select[name=activation]").select_option("erf")
    page.locator("input[name=std]").fill("0.1")
    page.locator("#run").click()
    page.wait_for_function("() => window.lab.end?.kind === 'minimum'")
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


def test_many_seeds_are_marks_and_a_click_shows_one(page, address):
    page.goto(address + fragment(SMALL))
    ended(page)
    page.locator("input[name=many]").fill("3")
    page.locator("#try-seeds").click()
    page.locator("[data-seed='2']").wait_for()
    page.locator("[data-seed='2']").click()
    page.wait_for_timeout(200)
    ended(page)
    assert page.locator("input[name=seed]").input_value() == "2"
    page.locator("input[name=many]").fill("200")
    page.locator("#try-seeds").click()
    page.locator("#stop").click()
    page.wait_for_function("() => window.lab.trying === null")
    assert page.inner_text("#status") == "Stopped."


def test_every_quantity_is_explained(page, address):
    page.goto(address + fragment(SMALL))
    ended(page)
    page.locator("#loss .title").hover()
    page.locator("#tip", has_text="Gaussian inputs").wait_for()
    with page.context.expect_page() as opened:
        page.locator("#tip a").click()
    section = opened.value.locator("section:target")
    section.wait_for()
    assert section.get_attribute("id") == "loss"
    sections = set(opened.value.evaluate("() => [...document.querySelectorAll('section')].map((s) => s.id)"))
    words = "() => [...document.querySelectorAll('[data-word]')].map((e) => e.dataset.word)"
    assert set(page.evaluate(words)) <= sections
    page.locator("input[name=tolerance]").focus()
    page.locator("#tip", has_text="each step").wait_for()
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()
    with page.context.expect_page() as opened:
        page.keyboard.press("?")
    assert opened.value.url.endswith("help.html#tolerance")
