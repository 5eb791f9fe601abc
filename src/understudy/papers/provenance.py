"""Which code made a result: one key for a module and everything of this package that it imports.

The key is a hash of source code without comments and docstrings, so that rewording a sentence keeps results. What is
imported is read from the source, inside functions too: no module is run for it.
"""

import ast
import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = "understudy"
ROOT = Path(__file__).parent.parent
WITHOUT_NUMBERS = tuple(
    f"{PACKAGE}.{name}"
    for name in (
        "plots",
        "commands",
        "papers.figures",
        "papers.ledger",
        "papers.registry",
        "papers.report",
        "papers.result",
        "papers.runner",
        "papers.workspace",
    )
)
"""Modules that draw, store and show results: they change no number."""


def code_key(function: Callable[..., Any]) -> str:
    """Return 16 hexadecimal digits that name the code of the function's module and of all that it imports.

    >>> code_key(code_key) == code_key(modules)
    True
    """
    digest = hashlib.sha256()
    for name in sorted(modules(function.__module__)):
        digest.update(f"{name} {_source_hash(name)}\n".encode())
    return digest.hexdigest()[:16]


@cache
def modules(start: str) -> frozenset[str]:
    """Return the names of `start` and of every module of this package that it imports, directly or not."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in found or name.startswith(WITHOUT_NUMBERS):
            continue
        found.add(name)
        waiting += _imported(name)
    return frozenset(found)


@cache
def _imported(name: str) -> frozenset[str]:
    """The modules of this package that one module names in its imports."""
    tree = _tree(name)
    found: set[str] = set()
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ImportFrom) and node.module and _ours(node.module):
            # `from room import name`: a module of that name, or something that the room's module offers.
            parts = [f"{node.module}.{alias.name}" for alias in node.names]
            found.update(part if _file(part) else _home(part) for part in parts)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names if _ours(alias.name) and alias.name != PACKAGE)
            packages = [alias.asname or alias.name for alias in node.names if alias.name == PACKAGE]
            found.update(used for package in packages for used in _attributes(tree, package))
    return frozenset(found - {PACKAGE, f"{PACKAGE}.papers"} | _of_papers(found))


def _of_papers(found: set[str]) -> set[str]:
    """What claims take from `understudy.papers` is of these modules; its other modules change no number."""
    if f"{PACKAGE}.papers" not in found:
        return set()
    return {f"{PACKAGE}.papers.{name}" for name in ("check", "claim", "measurement", "values")}


def _attributes(tree: ast.AST | None, package: str) -> set[str]:
    """The modules of what is taken from the package as an attribute, such as `us.fit`."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)] if tree else []
    names = {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == package}
    return {_home(f"{PACKAGE}.{name}") for name in names}


def _home(name: str) -> str:
    """The module that offers a name, such as `understudy.fit` or `understudy.tasks.Population`."""
    import understudy

    if name.rpartition(".")[0] != PACKAGE:
        return name.rpartition(".")[0]
    public = name.rpartition(".")[2]
    return understudy._HOMES.get(public, name if _file(name) else PACKAGE)


def _ours(name: str) -> bool:
    return name.split(".")[0] == PACKAGE


@cache
def _file(name: str) -> Path | None:
    """The module's source file; None if there is no such module or it has no source. Imports nothing."""
    if not _ours(name):
        origin = getattr(sys.modules.get(name), "__file__", None)
        return Path(origin) if origin else None
    base = ROOT.joinpath(*name.split(".")[1:])
    return next((path for path in (base / "__init__.py", base.with_suffix(".py")) if path.exists()), None)


@cache
def _tree(name: str) -> ast.Module | None:
    path = _file(name)
    return None if path is None else ast.parse(path.read_text(encoding="utf-8"))


@cache
def _source_hash(name: str) -> str:
    """The hash of a module's code, without docstrings."""
    tree = _tree(name)
    if tree is None:
        return "no source"
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()
