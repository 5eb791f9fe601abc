"""The description of an experiment: frozen, validated, and the same text wherever it is computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from understudy.files import canonical_json, content_hash

if TYPE_CHECKING:
    import xarray as xr


class OutOfTimeError(Exception):
    """The time limit was reached."""


class Description(Protocol):
    """A frozen description of runs that differ only in their seed. One description is one file of a store.

    A description does not contain the seeds: each seed is a row of its file, and more seeds are more rows. It contains
    contents, never file names. The configuration has a hash of every array that a user gives, and a worker is sent the
    arrays themselves.
    """

    kind: ClassVar[str]
    needed: ClassVar[frozenset[str]]  # variables that stored rows must have
    most_together: ClassVar[int]  # most seeds in one item of work: these are lost if a worker dies

    @property
    def arrays(self) -> Mapping[str, np.ndarray]:
        """Arrays that were given, by name."""

    def configuration(self) -> dict[str, Any]:
        """The description in JSON types; its hash names the file."""

    @classmethod
    def of(cls, configuration: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> Self:
        """The description of a configuration; `arrays` are those that it names."""

    def rows(self, seeds: list[int], *, seconds: float | None = None) -> xr.Dataset | None:
        """Compute these seeds, one row per seed. After `seconds`, the finished rows, or None if there are none."""


def key_of(description: Description) -> str:
    """The hash of a description."""
    return content_hash(canonical_json(description.configuration(), "description").encode())


def array_fields(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The entry of a configuration for given arrays: shapes, and hashes of their contents; empty without arrays."""
    if not arrays:
        return {}
    return {
        "arrays": {
            name: {"shape": list(np.shape(x)), "content": content_hash(np.ascontiguousarray(x, "<f8").tobytes())}
            for name, x in sorted(arrays.items())
        }
    }


def array_variables(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Given arrays as variables of a dataset, `given_<name>`."""
    return {
        f"given_{name}": (tuple(f"given_{name}_{axis}" for axis in range(np.ndim(x))), np.asarray(x))
        for name, x in arrays.items()
    }


def arrays_in(dataset: xr.Dataset) -> dict[str, np.ndarray]:
    """The given arrays that a stored result holds; the inverse of `array_variables`."""
    prefix = "given_"
    return {str(n)[len(prefix) :]: v.values for n, v in dataset.data_vars.items() if str(n).startswith(prefix)}


def is_count(value: Any) -> bool:
    """Whether a value is a positive whole number."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value > 0)


def check_finite_array(name: str, value: Any, *ndim: int) -> np.ndarray:
    """The value as a read-only array of finite numbers with one of these numbers of axes; raises `ValueError`."""
    try:
        array = np.array(value, float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is an array of numbers; received {value!r}.") from None
    if array.ndim not in ndim or array.size == 0 or not np.all(np.isfinite(array)):
        axes = " or ".join(map(str, ndim))
        raise ValueError(f"{name} has {axes} axes of finite numbers; received shape {array.shape}.")
    array.setflags(write=False)
    return array
