"""Convert dataclasses to JSON and back, so that a stored result holds all that its objects held."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from jaxtyping import AbstractArray

from understudy import activations
from understudy.activations import Activation
from understudy.files import jsonable


def to_record(value: Any, skip: tuple[str, ...] = ()) -> Any:
    """Return a dataclass, or a named tuple, as JSON types, without the fields in `skip`.

    Fields may be numbers, text, arrays, activations, None, and tuples or dataclasses of these.
    """
    if isinstance(value, Activation):
        return value.name
    if names := _field_names(value):
        return {name: to_record(getattr(value, name)) for name in names if name not in skip}
    if isinstance(value, list | tuple):
        return [to_record(item) for item in value]
    if isinstance(value, np.ndarray) and value.size == 0:
        return {"empty": list(value.shape)}  # a list would lose the shape
    return jsonable(value)


def from_record(kind: Any, record: Any, **given: Any) -> Any:
    """Return the object of type `kind` from a record of `to_record`; `given` are the fields that it skipped.

    Fields that the type no longer has are ignored. A missing field without a default raises `TypeError`.
    """
    if record is None:
        return None
    if get_origin(kind) in (Union, types.UnionType):  # X | None
        return from_record(next(part for part in get_args(kind) if part is not types.NoneType), record)
    if isinstance(kind, type) and issubclass(kind, Activation):
        try:
            return activations.get(record)
        except ValueError:  # a function of the user's own
            return None
    if isinstance(kind, type) and (names := _field_names(kind)):
        hints = get_type_hints(kind)
        return kind(**{name: from_record(hints[name], record[name]) for name in names if name in record}, **given)
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        kinds = [inner[0]] * len(record) if inner[-1] is Ellipsis else inner
        return tuple(from_record(part, item) for part, item in zip(kinds, record, strict=True))
    if kind is np.ndarray or (isinstance(kind, type) and issubclass(kind, AbstractArray)):
        return np.zeros(record["empty"]) if isinstance(record, Mapping) else np.asarray(record, float)
    return float(record) if kind is float else record


def _field_names(value: Any) -> tuple[str, ...]:
    """The fields of a dataclass or a named tuple (or of its type); none for anything else."""
    if dataclasses.is_dataclass(value):
        return tuple(field.name for field in dataclasses.fields(value) if field.init)
    return () if isinstance(value, Mapping) else tuple(getattr(value, "_fields", ()))
