"""Tables on narrow screens lose whole columns from the right, and say which."""

import io

import pytest
from rich.console import Console

from understudy.commands.claims import print_table
from understudy.commands.screen import new_table, show_table


def printed(width):
    table = new_table()
    for head in ("verdict", "runs", "loss", "time"):
        table.add_column(head, no_wrap=True)
    table.add_row("minimum", "20", "0.072452645", "1e+04")
    screen = io.StringIO()
    show_table(Console(file=screen, width=width), table)
    return screen.getvalue()


@pytest.mark.parametrize(("width", "left_out"), [(80, []), (30, ["time"]), (20, ["loss", "time"])])
def test_columns_are_shown_whole_or_named(width, left_out):
    text = printed(width)
    rest = "".join(text.split("narrow")[1:])
    assert [head for head in ("loss", "time") if head in rest] == left_out
    assert "…" not in text
    assert ("0.072452645" in text) == ("loss" not in left_out)


@pytest.mark.parametrize(("width", "shown"), [(60, False), (80, True)])
def test_claims_show_values_or_name_them(width, shown):
    row = {"id": "one-neuron", "where": "Thm 1", "paper_value": "0.5", "measured": "0.25", "status": "reproduced"}
    screen = io.StringIO()
    print_table(Console(file=screen, width=width), "paper", [{**row, "when": "", "settings_of": ""}])
    text = screen.getvalue()
    assert "one-neuron" in text
    assert "reproduced" in text
    assert ("0.25" in text) == shown
    assert ("too narrow to show: Paper, Measured" in text) == (not shown)
