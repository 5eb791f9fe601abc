"""The page in a real browser: vectors by mouse and by keys, teachers from files."""

import math

import pytest
from browsing import SMALL, ended, fragment, needs_chromium

pytestmark = needs_chromium


def middle(page, selector):
    box = page.locator(selector).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def asked(page):
    return page.evaluate("() => window.lab.question")


def test_teachers_are_dragged_added_and_removed(page, address):
    page.goto(address + fragment(SMALL))
    ended(page)
    page.locator("body").press("End")  # while frames are played, tips are drawn anew all the time
    x, y = middle(page, "[data-tip='teacher-0']")
    ground = middle(page, "#vectors .frame")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(ground[0], y - 60, steps=4)  # from the angle 0 straight up
    page.mouse.up()
    assert asked(page)["teacher"]["angles"] == pytest.approx([math.pi / 2, 2], abs=0.05)
    ended(page)
    page.mouse.dblclick(ground[0] - 50, ground[1] + 30)
    page.wait_for_function("() => window.lab.question.teacher.angles.length === 3")
    ended(page)
    page.locator("body").press("End")
    page.mouse.dblclick(*middle(page, "[data-tip='teacher-2']"))
    page.wait_for_function("() => window.lab.question.teacher.angles.length === 2")
    assert ended(page)[0] == "minimum"
    assert page.locator("input[name=angles]").input_value().count(",") == 1


def test_a_start_is_drawn_by_mouse_and_by_keys(page, address):
    page.goto(address + fragment(SMALL))
    ended(page)
    page.locator("body").press("Home")
    x, y = middle(page, "[data-tip='student-0']")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y - 20, steps=4)
    page.mouse.up()
    drawn = asked(page)["start"]
    assert drawn["kind"] == "vectors"
    ended(page)
    assert page.locator("select[name=start]").input_value() == "vectors"
    page.locator("body").press("Home")
    page.locator("[data-tip='student-0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    moved = asked(page)["start"]["incoming"][0]
    assert moved[0] > drawn["incoming"][0][0]
    assert moved[1] == pytest.approx(drawn["incoming"][0][1], abs=1e-6)
    assert ended(page)[0] == "minimum"


def test_a_teacher_comes_from_a_file(page, address):
    page.goto(address + fragment(SMALL))
    ended(page)
    page.locator("select[name=teacher]").select_option("vectors")
    bad = {"name": "teacher.json", "mimeType": "application/json", "buffer": b"{"}
    page.locator("input[name=file]").set_input_files(bad)
    page.locator("#complaint", has_text="cannot be read").wait_for()
    content = b'{"incoming": [[1, 0], [0.6, 0.8]], "outgoing": [1, 2], "activation": "softplus"}'
    page.locator("input[name=file]").set_input_files({**bad, "name": "own.json", "buffer": content})
    page.wait_for_function("() => window.lab.question.teacher.kind === 'vectors'")
    ended(page)
    assert asked(page)["teacher"]["outgoing"] == [1, 2]
    assert page.locator("select[name=activation]").input_value() == "softplus"
