"""What the README says is true: its Python block runs and prints what stands there, and its numbers hold."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from scripts.ledger_table import table

import understudy as us
from understudy.papers.ledger import entries

README = (Path(__file__).parent.parent / "README.md").read_text()
REGULAR = "left undecided of those critical to rounding and not degenerate"
"""The count, by kind of task, in the ledger."""


BLOCKS = re.findall(r"```python\n(.*?)```", README, re.S)


@pytest.mark.parametrize("block", BLOCKS, ids=["theorist", "engineer"])
def test_a_python_block_prints_what_the_readme_says(block):
    if "import torch" in block:
        pytest.importorskip("torch", reason="PyTorch is not installed")
    said = re.findall(r"^# (.*)$", block, re.M)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(block, {})
    assert printed.getvalue().split("\n")[:-1] == said


@pytest.fixture(scope="module")
def demo():
    return us.fit(us.Population(us.Teacher.orthonormal(8, dim=9, activation="erf"), width=4), seeds=20)


def test_demo_numbers(demo):
    assert {(r.certificate.kind, r.structure.label) for r in demo} == {("minimum", "3-copy-1-average")}
    assert len(demo) == 20
    stated = float(re.search(r"\| their loss.*?\| ([\d.]+) \|", README).group(1))
    theory = us.theory.one_neuron("erf", teachers=5).loss
    assert abs(stated - theory) < 1e-12
    assert max(abs(r.loss - theory) for r in demo) < 1e-12
    assert max(r.certificate.gradient_norm for r in demo) <= 1e-12


def test_files_the_readme_points_to_exist():
    for target in re.findall(r"\]\(((?!http)[^)#]+)\)", README):
        assert (Path(__file__).parent.parent / target).exists(), target


def test_the_ledger_is_what_the_readme_says():
    for line in table().splitlines():
        assert line in README, "bring the table up to date: python -m scripts.ledger_table"


def test_the_promises_are_what_the_readme_says():
    found = {entry.id: entry.best for entry in entries("promises") if entry.best is not None}
    points, kills, natures = (found[name].measured for name in ("certificates", "kill-soak", "natures"))
    said = " ".join(README.split())

    def row(start):
        cells = re.search(rf"\| {re.escape(start)}[^|]* \| ([\d,]+) \| \*\*(\d+)\*\* \| (\d+) \|", said).groups()
        return [int(cell.replace(",", "")) for cell in cells]

    counts = [share.split(" of ") for share in points[REGULAR].values()]
    regular, undecided = sum(int(of) for _, of in counts), sum(int(part) for part, _ in counts)
    kinds = points["kinds of tasks"]
    assert row("points whose nature") == [natures["points"], natures["wrong verdicts"], natures["left undecided"]]
    assert row(f"random critical points of {kinds} kinds") == [points["points"], 0, points["left undecided"]]
    assert row(f"those of the {points['points']:,} that are critical") == [regular, 0, undecided]
    assert points["wrong verdicts"] == kills["finished cells lost"] == 0
    (share,) = [check for check in found["natures"].checks if "not degenerate" in check.name]
    assert share.measured == 0
    assert f"None of the {natures['left undecided']} undecided points is regular" in said
    largest = max(int(part) / int(of) for part, of in counts)
    assert f"The {undecided} are at most {100 * largest:.1f} % of any kind of task" in said
    assert f"At {points['beyond the reference']} of the {points['points']:,} points the reference itself" in said
    assert {found[name].settings["seed"] for name in ("certificates", "natures")} == {663}
    assert "The seed (663)" in said
    assert f"{len(found['proofs'].measured['natures'])} natures (minimum, or saddle" in said
    assert f"A sweep that was killed {kills['kills']} times lost nothing" in said
