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
    found = {entry.id: entry.best.measured for entry in entries("promises") if entry.best is not None}
    points, kills, natures = found["certificates"], found["kill-soak"], found["natures"]
    assert points["wrong verdicts"] == natures["wrong verdicts"] == kills["finished cells lost"] == 0
    said = " ".join(README.split())
    assert f"on {natures['points']} points whose nature" in said
    assert f"**no certificate is wrong** and {natures['left undecided']} are undecided" in said
    assert f"on {points['points']:,} random critical points of {points['kinds of tasks']} kinds of tasks no" in said
    assert f"({points['left undecided']} points it leaves undecided, {points['beyond the reference']} the" in said
    assert f"a sweep killed {kills['kills']} times loses nothing" in said
