"""Imports go one way: a room uses only rooms that stand before it in this list."""

import ast
import doctest
import re
from pathlib import Path

import pytest

import understudy

SOURCE = Path(__file__).parent.parent / "src" / "understudy"
ROOMS = [
    "extras",
    "files",
    "processes",
    "compilation",
    "kept_programs",
    "data",
    "rays",
    "numbers",
    "tables",
    "formulas",
    "activations",
    "gaussian",
    "networks",
    "oracles",
    "tasks",
    "dynamics",
    "points",
    "proofs",
    "certifying",
    "online",
    "theory",
    "surgery",
    "alignment",
    "regularised",
    "layers",
    "store",
    "network_files",
    "results",
    "branches",
    "fitting",
    "landscape",
    "clusters",
    "sweeps",
    "experiments",
    "plots",
    "torch",
    "papers",
    "lab",
    "commands",
    "cli",
    "__main__",
]


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path):
    """Rooms that a file imports, also inside its functions and in the examples of its docstrings."""
    source = path.read_text()
    yield from _imported(ast.parse(source))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            examples = doctest.DocTestParser().get_examples(text)
            yield from _imported(ast.parse("".join(example.source for example in examples)))


def _imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "understudy":
            yield from (_home(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("understudy."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "understudy":
                    yield from _used(tree, alias.asname or alias.name)
                elif alias.name.startswith("understudy."):
                    yield alias.name.split(".")[1]


def _used(tree, package):
    """The rooms of what is taken from the package as an attribute: `us.fit` is of `fitting`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == package:
            yield _home(node.attr)


def _home(name):
    home = understudy._HOMES.get(name, f"understudy.{name}")
    return home.removeprefix("understudy.").split(".")[0]


def test_what_is_taken_from_the_package_is_seen(tmp_path):
    file = tmp_path / "file.py"
    file.write_text("def f():\n    '''\n    >>> import understudy as us\n    >>> us.fit\n    '''\n")
    assert list(imported(file)) == ["fitting"]
    file.write_text("import understudy as us\nus.theory.one_neuron, us.interaction\n")
    assert sorted(imported(file)) == ["gaussian", "theory"]


def test_every_room_is_listed():
    assert {room_of(path) for path in SOURCE.rglob("*.py")} == {*ROOMS, "__init__"}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_from_rooms_before_it(room):
    before = {*ROOMS[: ROOMS.index(room) + 1], "__version__"}
    files = [path for path in SOURCE.rglob("*.py") if room_of(path) == room]
    wrong = {
        f"{path.relative_to(SOURCE)} imports {name}"
        for path in files
        for name in imported(path)
        if name in ROOMS and name not in before
    }
    assert not wrong


def test_the_architecture_page_lists_the_rooms_in_order():
    page = (SOURCE.parent.parent / "docs" / "architecture.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.M) == [room for room in ROOMS if room != "__main__"]


def lines_of(function):
    """Lines of a function without its docstring."""
    documented = ast.get_docstring(function) is not None
    first = function.body[1] if documented and len(function.body) > 1 else function.body[0]
    return function.end_lineno - first.lineno + 1


def test_functions_are_short():
    long = [
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and lines_of(node) > 60
    ]
    assert not long
