"""The figure of a sweep: cells that differ in more than k stand in columns of their own, and what is left out is said."""

import re

import pytest

from understudy import plots
from understudy.plots.sweep_figure import MOST_COLUMNS, group_by_column


def cell(teacher=5, dim=6, student=4, label="4-copy", **changes):
    point = {"kind": "minimum", "label": label, "count": 3, "loss": 0.1 / teacher, "theory": None}
    start = {"outgoing": "trained", "init": "gaussian", "init_std": 0.1}
    return {
        "activation": "erf", "teacher": teacher, "student": student, "dim": dim, **start, "runs": 3, "points": [point],
        **changes,
    }  # fmt: skip


def test_cells_that_differ_in_k_only_share_a_column():
    (column,) = group_by_column([cell(k, k + 1) for k in (7, 5, 6)]).items()
    assert column == ("erf, 4 students", [cell(5, 6), cell(6, 7), cell(7, 8)])


@pytest.mark.parametrize(
    ("rows", "titles"),
    [
        ([cell(k, k + x) for k in (5, 6) for x in (1, 3)], ["d = k + 1", "d = k + 3"]),
        ([cell(k, d) for k in (5, 6) for d in (9, 20)], ["d = 9", "d = 20"]),
        ([cell(dim=d) for d in (6, 8)], ["d = 6", "d = 8"]),
        ([cell(outgoing=x) for x in ("trained", "fixed")], ["outgoing trained", "outgoing fixed"]),
        ([cell(init=x) for x in ("gaussian", "glorot")], ["gaussian", "glorot"]),
        ([cell(init_std=x) for x in (0.1, 1.0)], ["std 0.1", "std 1"]),
    ],
)
def test_whatever_else_varies_has_columns_and_is_in_their_titles(rows, titles):
    columns = group_by_column(rows)
    assert list(columns) == [f"erf, 4 students\n{title}" for title in titles]
    for column in columns.values():
        assert len({row["teacher"] for row in column}) == len(column), "none is drawn over another"


def test_what_is_left_out_is_said(tmp_path):
    few = [cell(student=n) for n in range(1, MOST_COLUMNS + 1)]
    assert "left out" not in words(few, tmp_path / "few")
    said = words([*few, *(cell(student=n) for n in (20, 30))], tmp_path / "many")
    assert "2 of 8 columns are left out, from “erf, 20 students” on" in said


def test_labels_without_a_colour_are_counted(tmp_path):
    rows = [cell(teacher, label=f"odd-{teacher}") for teacher in range(5, 14)]
    assert "3 others" in words(rows, tmp_path / "sweep")


def words(rows, stem):
    """Comments of an SVG are the texts it shows."""
    paths = plots.save(plots.sweep(rows), stem)
    return " ".join(re.findall(r"<!-- (.*?) -->", paths[1].read_text()))
