"""The page: self-contained, complete, safe with any text."""

import base64
import re
from html.parser import HTMLParser

import pytest

from understudy.papers import Measurement, close, reproduce

VOID = {"meta", "link", "img", "br", "input", "hr"}


class Reader(HTMLParser):
    """Collects links and ids, and checks that tags nest."""

    def __init__(self):
        super().__init__()
        self.open, self.targets, self.ids, self.tags = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "data", "action", "poster"):
                self.targets.append(value)
            if name == "id":
                self.ids.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(path):
    reader = Reader()
    page = path.read_text(encoding="utf-8")
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return page, reader


@pytest.fixture
def page(toy, tmp_path):
    return read(reproduce("toy", out=tmp_path).page)


def test_page_needs_nothing_else(page):
    html, reader = page
    assert all(target.startswith(("#", "data:")) for target in reader.targets)
    assert not re.search(r"https?://|@import|url\(", html)
    assert "script" not in reader.tags


def test_every_claim_has_a_section_and_a_way_to_it(page):
    html, reader = page
    assert reader.ids == ["claims", "basel", "wrong", "misprint", "raising"]
    assert {target for target in reader.targets if target.startswith("#")} == {f"#{name}" for name in reader.ids}
    for said in (
        "1.64493",
        "1.63498",
        "The tail after N terms is below 1/N.",
        "Slow, but it arrives.",
        "terms = 100",
    ):
        assert said in html
    for status in ("◐ reproduced in part", "≠ differs", "✎ misprint", "✕ failed"):
        assert html.count(status) >= 2
    assert "the printed 1 is the sum from 1" in html
    assert "Σ 2⁻ʲ from 0 is 1, as printed" in html


def test_text_is_escaped(page):
    html, _ = page
    assert "Series &amp; Sums" in html
    assert "&lt;basel&gt;" in html
    assert "the toy broke &lt;here&gt;" in html


def test_figure_is_inside_the_page(page):
    _, reader = page
    figures = [target for target in reader.targets if target.startswith("data:image/svg+xml;base64,")]
    assert len(figures) == 1
    svg = base64.b64decode(figures[0].partition(",")[2]).decode()
    assert svg.rstrip().endswith("</svg>")


def test_large_figures_are_embedded_as_png(toy, tmp_path, monkeypatch):
    monkeypatch.setattr("understudy.papers.report.LARGEST_SVG", 10)
    _, reader = read(reproduce("toy", out=tmp_path).page)
    assert any(target.startswith("data:image/png;base64,iVBOR") for target in reader.targets)


def test_the_same_result_gives_the_same_figure(toy, tmp_path):
    reproduce("toy", "basel", out=tmp_path)
    figure = tmp_path / "toy" / "figures" / "basel-quick.svg"
    first = figure.read_bytes()
    reproduce("toy", "basel", out=tmp_path)
    assert figure.read_bytes() == first


def test_claims_not_measured_are_listed_as_not_yet(toy, tmp_path):
    html, reader = read(reproduce("toy", "basel", out=tmp_path).page)
    assert reader.ids == ["claims", "basel", "wrong", "misprint", "raising"]
    assert "3 not yet" in html


def test_page_shows_the_other_scale_where_this_one_is_missing(toy, tmp_path):
    reproduce("toy", "misprint", full=True, out=tmp_path)
    html, _ = read(reproduce("toy", "basel", out=tmp_path).page)
    assert "quick settings: terms = 100" in html
    assert "full settings: terms = 1000" in html


def test_long_values_are_folded_away_and_figure_errors_shown(toy, tmp_path):
    def draw(measurement, figure):
        raise ZeroDivisionError("no axes today")

    def measure(settings, progress):
        return Measurement([close("x", 1.0, 1.0, 0.1)], list(range(500)))

    toy.module.CLAIMS = (toy.claim("long", measure, draw),)
    html, reader = read(reproduce("toy", out=tmp_path).page)
    assert "details" in reader.tags
    assert "no axes today" in html
