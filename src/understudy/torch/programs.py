"""Read programs of `torch.export` (.pt2) from anyone: checked before PyTorch's own reader sees them.

`torch.export.load` unpickles parts of the archive and evaluates expressions in it. The archive is therefore searched
first: only plain tensors, operators of PyTorch's own `aten` set, plain names and arithmetic of sizes pass. Pickles are
read with `weights_only`.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")
TARGET = re.compile(r"(torch\.ops\.aten\.[A-Za-z0-9_.]+|_operator\.[a-z_]+|math\.[a-z_]+|torch\.sym_[a-z_]+)\Z")
WORDS = frozenset([
    "Symbol", "Integer", "Rational", "Float", "Add", "Mul", "Pow", "Mod", "Max", "Min", "Abs", "FloorDiv", "CeilDiv",
    "CleanDiv", "PythonMod", "ModularIndexing", "IntTrueDiv", "FloatTrueDiv", "Eq", "Ne", "Le", "Lt", "Ge", "Gt",
    "And", "Or", "Not", "Equality", "Unequality", "GreaterThan", "LessThan", "StrictLessThan", "StrictGreaterThan",
    "True", "False", "positive", "integer", "nonnegative",
])  # fmt: skip
"""Names that an expression of sizes may use, in addition to symbols such as s31 and u0."""


def read_program(file: Path) -> Any:
    """The exported program; ValueError if there is anything in the file that is not needed for a plain network."""
    _check(file)
    with _weights_only():
        program = torch.export.load(file)
    for node in program.graph.nodes:
        if node.op == "call_function" and not TARGET.match(_called(node.target)):
            raise ValueError(f"it calls {_called(node.target)}, which is not an operator of a plain network")
    return program


def _check(file: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            if "custom_obj_" in name or "opaque_obj_" in name:
                raise ValueError(f"it holds an object ({name}), and reading that could run code")
            if name.endswith(".json"):
                for key, text in _texts(json.loads(archive.read(name)), ""):
                    _check_text(key, text)


def _check_text(key: str, text: str) -> None:
    if key == "expr_str":
        words = re.findall(r"[A-Za-z_]\w*", text)
        plain = re.fullmatch(r"[\w\s+\-*/%().,=<>']*", text)
        good = plain and all(word in WORDS or re.fullmatch(r"z?[suf]+\d+", word) for word in words)
    elif key == "target":
        good = TARGET.match(text) is not None
    elif key == "name":
        good = text == "" or NAME.match(text) is not None
    else:
        return
    if not good:
        raise ValueError(f"its {key} {text[:60]!r} is not that of a plain network")


def _texts(tree: Any, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from _texts(value, name)
    elif isinstance(tree, list):
        for value in tree:
            yield from _texts(value, key)
    elif isinstance(tree, str):
        yield key, tree


def _called(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return f"torch.ops.{target}"
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"


@contextmanager
def _weights_only() -> Iterator[None]:
    """PyTorch's own switch that makes every `torch.load` refuse anything but tensors."""
    switch = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(switch)
    os.environ[switch] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[switch]
        else:
            os.environ[switch] = before
