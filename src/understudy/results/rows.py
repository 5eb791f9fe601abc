"""Seeds as rows: the runs of one description in one file of a store, to which more seeds can be added."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from understudy.files import locked
from understudy.store import STAMPS, Store

if TYPE_CHECKING:
    import xarray as xr

_logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 2.0
"""Rows wait at most about this long before they are stored."""

SHARE = 0.1
"""Storing takes at most about this share of the time, because every addition rewrites the whole file."""


class SeedRows:
    """Rows of the seeds of one configuration, in one file of a store; several processes may add to it.

    - `configuration`: what the rows were computed from, without seeds.
    - `needed`: variables that a stored file must have. A file that lacks some counts as missing.
    """

    def __init__(self, store: Store, configuration: Mapping[str, Any], needed: Collection[str] = ()):
        self.store, self.configuration, self.needed = store, dict(configuration), frozenset(needed)
        self._waiting: list[xr.Dataset] = []
        self._stored_at = time.monotonic()
        self._took = 0.0

    def load(self) -> xr.Dataset | None:
        """The stored rows, or None; a damaged file, or one that lacks variables, counts as missing."""
        stored = self.store.load(self.configuration)
        if stored is None:
            return None
        lacking = sorted(({"seed"} | self.needed) - set(map(str, stored.variables)))
        if lacking:
            path = self.store.path(self.configuration)
            _logger.warning("%s has no %s. It counts as missing.", path, ", ".join(lacking))
            return None
        return stored

    def missing(self, seeds: Sequence[int]) -> list[int]:
        """Which of these seeds are not stored yet."""
        done = seeds_in(self.load())
        return [s for s in seeds if s not in done]

    def add(self, rows: xr.Dataset) -> None:
        """Add rows to the file. Rows that another process has stored in the meantime are kept."""
        with locked(self.store.path(self.configuration)):
            stored = self.load()
            if stored is not None:
                done = seeds_in(stored)
                new = [int(s) for s in rows["seed"].values if int(s) not in done]
                rows = join_rows([stored, rows.sel(seed=new)]) if new else stored
            self.store.save(self.configuration, rows.sortby("seed"))

    def put(self, rows: xr.Dataset) -> None:
        """Like `add`, but rows may wait to be stored together. Call `flush` at the end."""
        self._waiting.append(rows)
        if time.monotonic() - self._stored_at > max(PATIENCE_SECONDS, self._took / SHARE):
            self.flush()

    def flush(self) -> None:
        """Store the waiting rows. If that fails they keep waiting."""
        if self._waiting:
            begun = time.monotonic()
            self.add(join_rows(self._waiting))
            self._waiting.clear()
            self._stored_at = time.monotonic()
            self._took = self._stored_at - begun


def seeds_in(rows: xr.Dataset | None) -> set[int]:
    """The seeds that have a row."""
    return set() if rows is None else {int(s) for s in rows["seed"].values}


def join_rows(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """Join the rows of several datasets. Attributes that a store has added are dropped.

    Variables without the dimension `seed`, such as the teacher's weights, are taken from the first part.
    """
    import xarray as xr

    if len(parts) == 1:
        joined = parts[0].copy()
    else:
        own = [part.drop_vars([n for n, v in part.data_vars.items() if "seed" not in v.dims]) for part in parts]
        shared = {n: v for n, v in parts[0].data_vars.items() if "seed" not in v.dims}
        joined = xr.concat(_same_sizes(own), dim="seed", join="outer", combine_attrs="override").assign(shared)
    joined.attrs = {name: value for name, value in parts[0].attrs.items() if name not in STAMPS}
    return joined


def _same_sizes(parts: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """The parts, padded with NaN to the same sizes (the numbers of eigenvalues, for example, differ)."""
    sizes = {dim: max(part.sizes[dim] for part in parts) for dim in parts[0].sizes if dim not in parts[0].coords}
    missing = [{dim: (0, size - part.sizes[dim]) for dim, size in sizes.items()} for part in parts]
    return [
        part.pad({dim: width for dim, width in lacking.items() if width[1]})
        if any(w for _, w in lacking.values())
        else part
        for part, lacking in zip(parts, missing, strict=True)
    ]
