"""One result, one file: atomic, named by a hash of its configuration, readable without us.

A `Store` is a directory of netCDF files. Each holds one `xarray.Dataset` and, in its attributes, the
configuration it was computed from (JSON), the version of this package, the time, and a checksum. Any tool that
reads netCDF opens them: `xarray.open_dataset(path)`.

What makes it safe:

- A file is written under a temporary name, flushed to disk, read back, and only then renamed into place. A process
  killed at any moment leaves either the whole result or none of it.
- Temporary names are unique, so any number of processes may write to one store; of two that save the same
  configuration the last one wins, whole.
- A file ends in a seal, the SHA-256 of all bytes before it. It is believed only if the seal is right and its
  configuration is the one asked for. Otherwise it is moved aside to `*.damaged`, the reason is logged, and the
  result counts as missing.

The seal stands behind the end of the HDF5 data, where HDF5 does not look, and is checked before HDF5 sees the file:
on a file with one flipped byte HDF5 may fail in any way, including never to return. The attribute `checksum` is of the
content instead; it proves at the time of saving that what can be read is what was given, and can be recomputed from a
copy that other tools have rewritten.
"""

import hashlib
import json
import logging
import math
import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import xarray as xr

_logger = logging.getLogger(__name__)

# No single save takes this long: a temporary file that old was left by a process that was killed.
STALE_SECONDS = 3600.0

_SEAL_MARK = b"understudy seal\n"
_SEAL_SIZE = len(_SEAL_MARK) + hashlib.sha256().digest_size


class DamagedFileError(ValueError):
    """A file that is not a sound stored result; the message says why."""


def _plain(value: Any, where: str) -> Any:
    """`value` in JSON's own types; `where` locates it in error messages."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(
                f"{where} is {value}, which has no JSON form and, if NaN, does not equal itself; "
                "use a finite number, None or a string."
            )
        return float(value)
    if isinstance(value, np.generic | np.ndarray):
        if value.dtype.kind not in "biufU":
            raise TypeError(
                f"{where} is a NumPy value of dtype {value.dtype}; use booleans, integers, floats or strings."
            )
        return _plain(value.tolist(), where)
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}; keys must be strings, e.g. {str(key)!r}.")
        return {key: _plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    raise TypeError(
        f"{where} is {value!r} of type {type(value).__name__}, which cannot be written as JSON; "
        "use None, booleans, numbers, strings, NumPy arrays, and lists or dictionaries of them."
    )


def canonical_json(configuration: Mapping[str, Any]) -> str:
    """The one JSON text of a configuration: keys sorted, floats by `repr`, no white space, ASCII.

    Tuples and NumPy arrays become lists, NumPy scalars Python numbers. The integer 1 and the float 1.0 stay
    different. Raises `TypeError` or `ValueError`, naming the place, for what JSON cannot hold.

    >>> canonical_json({"width": 4, "std": np.float64(0.1), "partition": (1, 2)})
    '{"partition":[1,2],"std":0.1,"width":4}'
    """
    if not isinstance(configuration, Mapping):
        raise TypeError(
            f"A configuration is a dictionary of JSON values; received {configuration!r} "
            f"of type {type(configuration).__name__}."
        )
    return json.dumps(_plain(configuration, "configuration"), sort_keys=True, separators=(",", ":"))


def configuration_hash(configuration: Mapping[str, Any]) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of `canonical_json(configuration)`.

    64 bits: among a million configurations two share a hash with probability 3e-8, and `Store.load` would notice.

    >>> configuration_hash({"a": 1, "b": [0.5]}) == configuration_hash({"b": (np.float64(0.5),), "a": np.int32(1)})
    True
    """
    return hashlib.sha256(canonical_json(configuration).encode()).hexdigest()[:16]


def _checksum(dataset: xr.Dataset) -> str:
    """SHA-256 over every variable (name, dimensions, shape, dtype, bytes, attributes) and the dataset's attributes.

    It describes what the dataset says, not how the file lays it out: byte order, the width of strings and whether
    an attribute was a scalar or a list of one (netCDF makes no difference) do not enter.
    """
    digest = hashlib.sha256()

    def add(*parts: Any) -> None:
        digest.update(json.dumps(parts).encode() + b"\n")

    def add_attributes(attributes: Mapping[Any, Any]) -> None:
        for name, value in sorted(attributes.items()):
            if name != "checksum":
                array = np.atleast_1d(np.asarray(value))
                add(str(name), array.dtype.kind, [str(item) for item in array.ravel().tolist()])

    for name, variable in sorted(dataset.variables.items(), key=lambda item: str(item[0])):
        array = np.asarray(variable.values)
        header = [str(name), name in dataset.coords, [str(dim) for dim in variable.dims], list(array.shape)]
        if array.dtype.kind in "OUT":
            add(*header, "text", [str(item) for item in array.ravel().tolist()])
        else:
            array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
            add(*header, array.dtype.str)
            digest.update(array.tobytes())
        add_attributes(variable.attrs)
    add_attributes(dataset.attrs)
    return digest.hexdigest()


def _file_digest(file: BinaryIO, size: int) -> bytes:
    """SHA-256 of the first `size` bytes of an open file."""
    digest = hashlib.sha256()
    file.seek(0)
    while size > 0 and (block := file.read(min(size, 1 << 20))):
        digest.update(block)
        size -= len(block)
    return digest.digest()


def _seal(path: Path) -> None:
    """Appends the seal to a finished file and waits until the whole is on the disk."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        seal = _SEAL_MARK + _file_digest(file, size)
        file.seek(size)
        file.write(seal)
        file.flush()
        os.fsync(file.fileno())


def _read(path: Path) -> xr.Dataset:
    """The dataset in `path`, in memory; `DamagedFileError` when the seal is broken.

    Other errors (no such file, no permission, no HDF5 library, no memory) pass through: they say nothing about the
    content. One open file serves for check and content, since another process may replace it in between.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END) - _SEAL_SIZE
        if size < 0:
            raise DamagedFileError(f"{path} is too short to be a stored result: {size + _SEAL_SIZE} bytes.")
        file.seek(size)
        seal = file.read(_SEAL_SIZE)
        if not seal.startswith(_SEAL_MARK):
            raise DamagedFileError(f"{path} is incomplete, or was rewritten by another program: it has no seal.")
        if seal != _SEAL_MARK + _file_digest(file, size):
            raise DamagedFileError(f"{path} was damaged after it was stored: its bytes do not fit its seal.")
        file.seek(0)
        with xr.open_dataset(file, engine="h5netcdf") as opened:
            return opened.load()


class Store:
    """A directory of results, one file each; made on the first save.

    `directory` is where; it is kept as an absolute path, so that a worker with another working directory finds it.
    """

    def __init__(self, directory: str | os.PathLike[str]):
        self.directory = Path(directory).absolute()
        if self.directory.exists() and not self.directory.is_dir():
            raise NotADirectoryError(f"A store is a directory; {self.directory} is a file. Name another place.")
        self._remove_stale()

    def __repr__(self) -> str:
        return f"Store({str(self.directory)!r})"

    def path(self, configuration: Mapping[str, Any]) -> Path:
        """Where the result of `configuration` is, or will be: `<kind>-<hash>.nc`, its own `kind` or "result"."""
        kind = configuration.get("kind", "result")
        if not isinstance(kind, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", kind):
            raise ValueError(
                f"The configuration's kind begins a file name: letters, digits, '_', '-', '.'; received {kind!r}."
            )
        return self.directory / f"{kind}-{configuration_hash(configuration)}.nc"

    def save(self, configuration: Mapping[str, Any], dataset: xr.Dataset) -> Path:
        """Stores `dataset` as the result of `configuration`, atomically; an older one is replaced.

        What is stored is read back before it counts: `ValueError` if the dataset does not survive netCDF unchanged
        (e.g. objects that are not strings), and nothing is stored.
        """
        path = self.path(configuration)
        stored = dataset.drop_encoding()
        stored.attrs = {
            **dataset.attrs,
            "configuration": canonical_json(configuration),
            "understudy_version": version("understudy"),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        stored.attrs["checksum"] = _checksum(stored)
        # No fill value: with one, reading would rewrite the bits of every NaN.
        encoding: dict[Any, dict[str, Any]] = {
            name: {"_FillValue": None} for name, variable in stored.variables.items() if variable.dtype.kind in "fc"
        }
        self.directory.mkdir(parents=True, exist_ok=True)
        temporary = self._temporary(path.name)
        try:
            stored.to_netcdf(temporary, engine="h5netcdf", encoding=encoding)
            _seal(temporary)
            if _checksum(_read(temporary)) != stored.attrs["checksum"]:
                raise ValueError(
                    f"The dataset for {path.name} does not survive being written as netCDF, so it was not stored; "
                    f"use numbers, booleans or strings with plain attributes. Received:\n{dataset}"
                )
            os.replace(temporary, path)
            _flush_directory(self.directory)
        finally:
            temporary.unlink(missing_ok=True)
        return path

    def load(self, configuration: Mapping[str, Any]) -> xr.Dataset | None:
        """The stored result of `configuration`, in memory; None when there is none.

        A damaged file counts as none: it is moved aside to `<name>.damaged` and the reason is logged as a warning.
        """
        path = self.path(configuration)
        try:
            before = path.stat()
            return self._read_result(path, configuration)
        except FileNotFoundError:
            return None
        except DamagedFileError as error:
            aside = path.with_name(path.name + ".damaged")
            _logger.warning("%s It is moved to %s and will be computed again.", error, aside.name)
            try:
                # Another process may have noticed too, and stored it anew meanwhile: leave that one in place.
                if os.path.samestat(before, path.stat()):
                    os.replace(path, aside)
            except FileNotFoundError:
                pass
            return None

    def open(self, path: str | os.PathLike[str]) -> xr.Dataset:
        """The result in one file, in memory, checked; a relative `path` is one inside the store.

        Raises `FileNotFoundError`, or `DamagedFileError` with the reason.
        """
        return _read(self.directory / path)

    def entries(self) -> Iterator[dict[str, Any]]:
        """The configurations of all sound results, in the order of their file names; damaged files are passed over."""
        for path in sorted(self.directory.glob("*.nc")):
            try:
                configuration = json.loads(_read(path).attrs["configuration"])
                if self.path(configuration) == path:
                    yield configuration
            except (DamagedFileError, FileNotFoundError):
                continue

    def _read_result(self, path: Path, configuration: Mapping[str, Any]) -> xr.Dataset:
        dataset = _read(path)
        if dataset.attrs["configuration"] != canonical_json(configuration):
            raise DamagedFileError(f"{path} holds the result of another configuration.")
        return dataset

    def _temporary(self, name: str) -> Path:
        """A name that no other process uses, and that counts as left behind after `STALE_SECONDS`."""
        return self.directory / f".{name}.{uuid.uuid4().hex}.tmp"

    def _remove_stale(self) -> None:
        """Removes what processes that were killed have left behind."""
        for path in self.directory.glob(".*.tmp"):
            try:
                if time.time() - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink()
            except FileNotFoundError:  # another process was quicker
                continue


def _flush_directory(path: Path) -> None:
    """Waits until a directory's entries are on the disk, so that a rename survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
