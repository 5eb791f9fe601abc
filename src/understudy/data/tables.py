"""Data sets in files: `.npz` archives with `inputs` and `targets`, and `.csv` tables. Nothing in a file is executed."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from understudy.data.checked import UNREADABLE
from understudy.files import check_regular

DataArrays = dict[str, np.ndarray]
_HELD_OUT = ("held_out_inputs", "held_out_targets")


def read_data_arrays(path: str | Path, target: Sequence[str] | None = None) -> DataArrays:
    """Read `inputs` (N, d) and `targets` (N,) or (N, m) from a file; `ValueError` names the array or column at fault.

    **Arguments**

    - `path`: an `.npz` archive with the arrays `inputs` and `targets` (and `held_out_inputs` and `held_out_targets`, if
      it has them), or a `.csv` table of numbers, with or without a first row of names.
    - `target`: of an archive, the name of the array of targets; of a table, the names or numbers (from 1) of the target
      columns. Default: `targets`, or the last column.
    """
    file = Path(path)
    try:
        check_regular(file)
        content = file.read_bytes()
    except OSError as error:
        raise ValueError(f"Cannot read the data in {path}: {error.strerror or error}.") from None
    if file.suffix.lower() == ".npz":
        return _from_archive(file.name, content, target)
    if file.suffix.lower() == ".csv":
        return _from_table(file.name, content, target)
    raise ValueError(f"Data are in a file that ends in .npz or .csv; received {file.name!r}.")


def hold_out(arrays: DataArrays, share: float) -> DataArrays:
    """Move a share of the rows, chosen at random but always the same, to `held_out_inputs` and `held_out_targets`.

    >>> made = hold_out({"inputs": np.zeros((10, 1)), "targets": np.zeros(10)}, 0.2)
    >>> len(made["inputs"]), len(made["held_out_inputs"])
    (8, 2)
    """
    if not 0 <= share < 1:
        raise ValueError(f"The share of rows to hold out is at least 0 and below 1; received {share:g}.")
    rows = len(arrays["inputs"])
    count = round(share * rows)
    if count == 0:
        return {name: arrays[name] for name in ("inputs", "targets")}
    if count == rows:
        raise ValueError(f"No row is left to train on: the data have {rows}. Hold out a smaller share.")
    order = np.random.default_rng(0).permutation(rows)
    held, kept = np.sort(order[:count]), np.sort(order[count:])
    chosen = {name: arrays[name][kept] for name in ("inputs", "targets")}
    return chosen | {f"held_out_{name}": arrays[name][held] for name in ("inputs", "targets")}


def _from_archive(name: str, content: bytes, target: Sequence[str] | None) -> DataArrays:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as loaded:
            arrays = {key: loaded[key] for key in loaded.files}
    except UNREADABLE:
        raise ValueError(f"{name} cannot be read as an .npz archive of arrays of numbers.") from None
    if target is not None and len(target) != 1:
        raise ValueError(f"The targets of an archive are one array; received {', '.join(target)}.")
    wanted = {"inputs": "inputs", "targets": "targets" if target is None else target[0]}
    if any(key in arrays for key in _HELD_OUT):
        wanted |= {key: key for key in _HELD_OUT}
    found = {}
    for key, source in wanted.items():
        if source not in arrays:
            raise ValueError(f"{name} has no array {source!r}; it has {', '.join(sorted(arrays)) or 'none'}.")
        found[key] = _numbers(arrays[source], f"The array {source!r} of {name}")
        if key.endswith("inputs") and found[key].ndim == 1:
            found[key] = found[key][:, None]
        axes = (2,) if key.endswith("inputs") else (1, 2)
        if found[key].ndim not in axes or 0 in found[key].shape:
            shape = "(N, d)" if key.endswith("inputs") else "(N,) or (N, m)"
            raise ValueError(
                f"The array {source!r} of {name} must have the shape {shape}; received {found[key].shape}."
            )
    for prefix in ("", "held_out_"):
        x, y = found.get(f"{prefix}inputs"), found.get(f"{prefix}targets")
        if x is not None and y is not None and len(x) != len(y):
            raise ValueError(
                f"{name} has {len(x)} rows in {wanted[f'{prefix}inputs']!r} and {len(y)} in "
                f"{wanted[f'{prefix}targets']!r}; each input needs a target."
            )
    return found


def _numbers(array: np.ndarray, what: str) -> np.ndarray:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{what} must hold real numbers; received the type {array.dtype}.")
    values = array.astype(float)
    if not np.all(np.isfinite(values)):
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"{what} must hold finite numbers; received {values[where]} at {where}.")
    return values


def _from_table(name: str, content: bytes, target: Sequence[str] | None) -> DataArrays:
    try:
        rows = [row for row in csv.reader(io.StringIO(content.decode("utf-8-sig"))) if any(c.strip() for c in row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{name} cannot be read as a table of numbers separated by commas: {error}.") from None
    if not rows:
        raise ValueError(f"{name} is empty.")
    named = not any(_number(cell) is not None for cell in rows[0])
    heads = [cell.strip() or f"column {i}" for i, cell in enumerate(rows[0], start=1)]
    heads = heads if named else [f"column {i}" for i in range(1, len(rows[0]) + 1)]
    body = rows[1:] if named else rows
    if len(heads) < 2 or not body:
        raise ValueError(f"{name} needs a column of inputs, a column of targets and a row of numbers.")
    values = np.empty((len(body), len(heads)))
    for i, row in enumerate(body, start=2 if named else 1):
        if len(row) != len(heads):
            raise ValueError(f"Row {i} of {name} has {len(row)} entries; the first row has {len(heads)}.")
        for j, cell in enumerate(row):
            number = _number(cell)
            if number is None or not np.isfinite(number):
                raise ValueError(
                    f"Row {i} of {name} has {cell.strip()!r:.40} in {_column(heads[j])}; all entries must be finite "
                    "numbers. Number classes 0, 1, …, and leave out rows with missing values."
                )
            values[i - (2 if named else 1), j] = number
    chosen = [len(heads) - 1] if target is None else [_find(word, heads, name) for word in target]
    others = [j for j in range(len(heads)) if j not in chosen]
    if not others:
        raise ValueError(f"All columns of {name} are targets; at least one must be an input.")
    return {"inputs": values[:, others], "targets": values[:, chosen[0]] if len(chosen) == 1 else values[:, chosen]}


def _column(head: str) -> str:
    return head if head.startswith("column ") else f"column {head!r}"


def _find(word: str, heads: list[str], name: str) -> int:
    if word in heads:
        return heads.index(word)
    if word.isdigit() and 1 <= int(word) <= len(heads):
        return int(word) - 1
    raise ValueError(
        f"{name} has no column {word!r}; it has {', '.join(heads)[:200]}. Give a name, or a number from 1."
    )


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
