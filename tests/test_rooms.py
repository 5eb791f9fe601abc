"""Imports go one way: a room uses only rooms that stand before it in this list."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "understudy"
ROOMS = [
    "files",
    "compilation",
    "data",
    "activations",
    "gaussian",
    "networks",
    "tasks",
    "dynamics",
    "points",
    "proofs",
    "certifying",
    "theory",
    "surgery",
    "alignment",
    "regularised",
    "layers",
    "store",
    "network_files",
    "fitting",
    "results",
    "summaries",
    "clusters",
    "sweeps",
    "experiments",
    "plots",
    "torch",
    "papers",
    "commands",
    "cli",
    "__main__",
]


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path):
    """Rooms that a file imports, also inside its functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "understudy":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("understudy."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("understudy."))


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
