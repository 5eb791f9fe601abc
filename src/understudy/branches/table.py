"""A continuation as tables: branches, and the special points on them."""

from __future__ import annotations

import html

import numpy as np

from understudy.branches.result import Branch, Continuation, Side, SpecialPoint
from understudy.tables import html_table, text_table

BRANCHES = ["branch", "from", "to", "points", "index", "loss", "leaves", "ends"]
SPECIALS = ["", "kind", "parameter", "±", "zeros", "before", "after", "certified", "branches"]
LEFT = range(len(SPECIALS))  # all columns


def branch_rows(result: Continuation) -> list[list[str]]:
    """One row per branch."""
    return [[str(i), *_branch(branch)] for i, branch in enumerate(result.branches)]


def _branch(branch: Branch) -> list[str]:
    changes = [int(branch.index[0])]
    for index in branch.index[1:]:
        if int(index) != changes[-1]:
            changes.append(int(index))
    indices = " → ".join(map(str, changes[:5])) + (" → …" if len(changes) > 5 else "")
    leaves = "" if branch.leaves is None else f"point {branch.leaves}"
    if branch.twins:
        leaves += f", {branch.twins + 1} copies"
    return [
        f"{branch.parameters[0]:.6g}",
        f"{branch.parameters[-1]:.6g}",
        str(len(branch)),
        indices,
        f"{branch.losses[0]:.4g} → {branch.losses[-1]:.4g}",
        leaves,
        branch.ending,
    ]


def special_rows(result: Continuation) -> list[list[str]]:
    """One row per special point."""
    return [[str(i), *_special(special)] for i, special in enumerate(result.special_points)]


def _special(special: SpecialPoint) -> list[str]:
    return [
        special.kind,
        f"{special.parameter:.12g}",
        f"{special.error:.0e}",
        str(special.multiplicity),
        _side(special.before),
        _side(special.after),
        "yes" if special.certified else "no",
        ", ".join(map(str, special.branches)),
    ]


def _side(side: Side | None) -> str:
    return "?" if side is None else f"{side.kind}, {side.eigenvalue:+.1e}"


def as_text(result: Continuation) -> str:
    """Both tables in plain characters."""
    parts = [_title(result), text_table(BRANCHES, branch_rows(result), LEFT)]
    if result.special_points:
        parts += ["", text_table(SPECIALS, special_rows(result), LEFT)]
    return "\n".join(parts)


def as_html(result: Continuation) -> str:
    """Both tables for notebooks."""
    parts = [f"<p>{html.escape(_title(result))}</p>", html_table(BRANCHES, branch_rows(result), LEFT)]
    if result.special_points:
        parts.append(html_table(SPECIALS, special_rows(result), LEFT))
    return "".join(parts)


def _title(result: Continuation) -> str:
    low, high = result.interval
    count, points = len(result.branches), int(np.sum([len(b) for b in result.branches]))
    return (
        f"{count} branch{'es' * (count != 1)} of critical points ({points} points) in {result.parameter} from {low:g} "
        f"to {high:g}, {len(result.special_points)} special point{'s' * (len(result.special_points) != 1)}"
    )
