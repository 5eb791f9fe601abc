"""What the documentation says is true: its Python runs and prints what stands there, its commands exist with their options,
every page is in the site's contents, and every figure shows a result of the ledger."""

import ast
import contextlib
import importlib
import inspect
import io
import json
import re
import shlex
from pathlib import Path

import pytest
import typer
from scripts import notebooks, site_figures, site_pages

import understudy as us
from understudy.cli import app
from understudy.papers.findings import findings
from understudy.papers.ledger import entries
from understudy.papers.registry import PAPERS

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.S)


@pytest.mark.thorough
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem)
def test_python_blocks_print_what_the_page_says(page, tmp_path, monkeypatch):
    for package in ("torch", "onnxruntime"):
        if any(f"import {package}" in block for block in blocks(page, "python")):
            pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)  # for pages that write files
    names = {}
    for block in blocks(page, "python"):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(block, names)
        assert printed.getvalue().split("\n")[:-1] == re.findall(r"^# (.*)$", block, re.M)


def commands(page):
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    lines += re.findall(r"`(understudy [^`]+)`", page.read_text())
    return [line for line in lines if line.startswith("understudy ")]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem)
def test_commands_and_options_exist(page):
    for line in commands(page):
        _, name, *arguments = shlex.split(line)
        known = {option for parameter in COMMANDS[name].params for option in parameter.opts}
        assert {word.partition("=")[0] for word in arguments if word.startswith("--")} <= known, line


def test_every_page_is_in_the_contents():
    contents = (ROOT / "mkdocs.yml").read_text()
    for page in PAGES:
        assert f" {page.relative_to(ROOT / 'docs')}\n" in contents, page
    for paper in PAPERS:
        assert f" papers/{paper}.md\n" in contents


@pytest.mark.parametrize("name", notebooks.PAGES)
def test_a_notebook_holds_what_its_page_holds(name):
    """The page's Python is run above; `python -m scripts.notebooks` writes the notebooks anew."""
    page = notebooks.PAGES[name]
    stored = (ROOT / "docs" / "notebooks" / f"{name}.ipynb").read_text()
    assert stored == notebooks.written(page)
    code = ["".join(cell["source"]) + "\n" for cell in json.loads(stored)["cells"] if cell["cell_type"] == "code"]
    assert code == blocks(page, "python")


ROOMS_OF_USERS = ("alignment", "branches", "dynamics", "experiments", "gaussian", "lab", "landscape", "networks",
                  "online", "plots", "points", "proofs", "regularised", "results", "surgery", "tasks", "theory",
                  "torch")  # fmt: skip
API = {
    page: re.findall(r"^::: (understudy\S+)", page.read_text(), re.M) for page in (ROOT / "docs" / "api").glob("*.md")
}
LISTED = {name for names in API.values() for name in names}


def test_every_name_of_the_package_is_in_the_api():
    known = {name.rpartition(".")[2] for name in LISTED}
    assert set(us._HOMES) <= known


@pytest.mark.parametrize("room", ROOMS_OF_USERS)
def test_every_public_name_of_a_room_is_in_the_api(room):
    tree = ast.parse((ROOT / "src" / "understudy" / room / "__init__.py").read_text())
    homes = [
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("understudy.")
        for alias in node.names
        if not (alias.asname or alias.name).startswith("_")
    ]
    assert not [f"{module}.{name}" for module, name in homes if not {f"{module}.{name}", f"understudy.{name}"} & LISTED]


@pytest.mark.parametrize("page", API, ids=lambda page: page.stem)
def test_every_name_in_the_api_has_words_and_an_example(page):
    """An example is a doctest of its own, or a line of the page's code; `test_python_blocks…` above runs that."""
    used = set(re.findall(r"\w+", "".join(re.findall(r"```(?:python|py)\n(.*?)```", page.read_text(), re.S))))
    for name in API[page]:
        module, _, last = name.rpartition(".")
        try:
            found = getattr(importlib.import_module(module), last)
        except ModuleNotFoundError as error:
            if str(error.name).startswith("understudy"):
                raise
            pytest.skip(f"{error.name} is not installed")
        assert inspect.getdoc(found), f"{name} has no docstring"
        assert ">>>" in inspect.getdoc(found) or PUBLIC.get(name, last) in used, f"{name} has no example"


PUBLIC = {"understudy.experiments.aligning.experiment.Experiment": "Align"}
"""Names that users know by another one."""


def test_every_link_between_pages_leads_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text()):
            place = (page.parent / target).resolve()
            made = place.parent.name == "papers" and place.stem in PAPERS
            assert place.exists() or made, f"{page.name} links to {target}"


def test_every_figure_of_a_paper_shows_a_result_of_the_ledger():
    drawn = {site_figures.image(entry) for handle in PAPERS for entry in entries(handle) if site_figures.shown(entry)}
    kept = set(site_figures.IMAGES.rglob("*.png"))
    assert kept, "the papers' pages have figures"
    assert kept == drawn, "made anew by `python -m scripts.site_figures results/papers`"


def test_a_paper_s_page_shows_its_figures_with_words_for_them():
    for handle, paper in PAPERS.items():
        text = site_pages.page(paper)
        for entry in entries(handle):
            if site_figures.shown(entry):
                path = re.escape(f"../images/papers/{handle}/{entry.id}.png")
                assert re.search(rf"!\[{entry.id}: .{{20,}}\]\({path}\)", text), entry.id


def test_a_paper_s_page_shows_signs_as_they_are():
    markdown = pytest.importorskip("markdown", reason="the documentation's dependencies are not installed")
    shown = markdown.markdown("\n".join(map(site_pages.page, PAPERS.values())), extensions=["tables"])
    assert "For n &lt; k, orthonormal teachers" in shown
    assert re.findall(r"\\(?:&lt;|\W|_).{10}", shown) == []


def test_a_finding_whose_checks_fail_says_which():
    for handle, paper in PAPERS.items():
        found = [finding for entry in entries(handle) for finding in findings(entry, entry.best)]
        failing = [check for finding in found for check in finding.check if not check.ok]
        assert site_pages.page(paper).count("\n| fails |") == len(failing)


def test_the_audit_says_what_the_ledger_says():
    rows = re.findall(r"^\| ([a-z-]+)/([a-z0-9-]+) \|.*\| ([^|]*) \|$", (ROOT / "docs" / "audit.md").read_text(), re.M)
    assert len(rows) > 40
    for paper, name, said in rows:
        (entry,) = [entry for entry in entries(paper) if entry.id == name]
        assert set(said.split(", ")) == {finding.status for finding in findings(entry, entry.best)}, f"{paper}/{name}"
