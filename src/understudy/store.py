"""Store results, one file per result: atomic, named by a hash of its configuration, readable without this package.

A `Store` is a directory of netCDF files. Each holds one `xarray.Dataset` and, in its attributes, the
configuration it was computed from (JSON), the format, the version of this package, the time, and a checksum. Any tool
that reads netCDF opens them: `xarray.open_dataset(path)`.

The store is safe for these reasons:

- A file is made in memory, read back there, written under a temporary name, flushed to disk, and only then renamed. If
  the process is killed at any moment, or the disk is full, the store has either the whole result or none of it.
- Temporary names are unique, so any number of processes may write to one store. If two processes save the same
  configuration, the whole file of the last one is kept.
- A file ends in a seal, the SHA-256 of all bytes before it. A file is accepted only if its seal is right and its
  configuration is the requested one. Otherwise it is renamed to `*.damaged`, the reason is logged, and the result
  counts as missing.
- The format is part of a file's name. A file of another format counts as missing. It is left in place, and the log says
  so.

The seal comes after the HDF5 data, where HDF5 does not look. It is checked before HDF5 opens the file, because HDF5 may
fail in any way on a file with one flipped byte, and may even never return. The attribute `checksum` describes the
content instead. It proves at the time of saving that the file reads back as the given dataset, and it can be recomputed
from a copy that other tools have rewritten.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy import __version__, files
from understudy.extras import need
from understudy.files import check_regular, content_hash, write_atomically

if TYPE_CHECKING:
    import xarray as xr

_logger = logging.getLogger(__name__)

FORMAT = 2
"""How results are laid out in files. It changes when code that reads one layout would misread the other."""

STAMPS = ("configuration", "format", "understudy_version", "created", "checksum")
"""Attributes that a stored result has besides its own."""

# No single save takes this long. An older temporary file was left behind by a killed process.
STALE_SECONDS = 3600.0

_SEAL_MARK = b"understudy seal\n"
_SEAL_SIZE = len(_SEAL_MARK) + hashlib.sha256().digest_size


class DamagedFileError(ValueError):
    """A file that is not a sound stored result; the message says why."""


class OtherFormatError(ValueError):
    """A sound file in the format of another version of this package."""


def canonical_json(configuration: Mapping[str, Any]) -> str:
    """Return the canonical JSON text of a configuration; see `understudy.files.canonical_json`.

    >>> canonical_json({"width": 4, "std": 0.1, "partition": (1, 2)})
    '{"partition":[1,2],"std":0.1,"width":4}'
    """
    if not isinstance(configuration, Mapping):
        raise TypeError(
            f"A configuration is a dictionary of JSON values; received {configuration!r} "
            f"of type {type(configuration).__name__}."
        )
    return files.canonical_json(configuration, "configuration")


def configuration_hash(configuration: Mapping[str, Any]) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of `canonical_json(configuration)`.

    These are 64 bits: among a million configurations two share a hash with probability 3e-8, and `Store.load` would
    notice.

    >>> configuration_hash({"a": 1, "b": [0.5]}) == configuration_hash({"b": (0.5,), "a": 1})
    True
    """
    return content_hash(canonical_json(configuration).encode())


def checksum(dataset: xr.Dataset) -> str:
    """SHA-256 over every variable (name, dimensions, shape, dtype, bytes, attributes) and the dataset's attributes.

    It describes the content of the dataset, not the layout of the file. Byte order and the width of strings do not
    matter. Nor does it matter whether an attribute was a scalar or a list of one, because netCDF does not distinguish
    them.
    """
    import numpy as np

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


def write_result(path: str | os.PathLike[str], configuration: Mapping[str, Any], dataset: xr.Dataset) -> Path:
    """Write a sealed file of `dataset` with the configuration in its attributes, atomically; see `Store.save`.

    The file name ends in `.nc`, which is added if it is missing.
    """
    file = Path(path)
    file = file if file.suffix == ".nc" else file.with_name(f"{file.name}.nc")
    stored = dataset.drop_encoding()
    stored.attrs = {
        **dataset.attrs,
        "configuration": canonical_json(configuration),
        "format": FORMAT,
        "understudy_version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    stored.attrs["checksum"] = checksum(stored)
    # No fill value: with one, reading would rewrite the bits of every NaN.
    encoding: dict[Any, dict[str, Any]] = {
        name: {"_FillValue": None} for name, variable in stored.variables.items() if variable.dtype.kind in "fc"
    }
    # In memory, because HDF5 can end the process if the disk is full.
    buffer = io.BytesIO()
    with _without_cluster_locks():
        stored.to_netcdf(buffer, engine="h5netcdf", encoding=encoding)
    content = buffer.getvalue()
    if checksum(_parse(content)) != stored.attrs["checksum"]:
        raise ValueError(
            f"The dataset for {file.name} does not survive being written as netCDF, so it was not stored; "
            f"use numbers, booleans or strings with plain attributes. Received:\n{dataset}"
        )
    return write_atomically(file, content + _SEAL_MARK + hashlib.sha256(content).digest())


def read_result(path: str | os.PathLike[str]) -> xr.Dataset:
    """Return the dataset in a sealed file, in memory.

    Raises `DamagedFileError` if the seal is broken, and `OtherFormatError` for a sound file of another format. Other
    errors (no such file, no permission, no HDF5 library, no memory) are not caught, because they say nothing about the
    content.
    """
    file = check_regular(path)
    whole = file.read_bytes()
    content, seal = whole[:-_SEAL_SIZE], whole[-_SEAL_SIZE:]
    if len(whole) < _SEAL_SIZE:
        raise DamagedFileError(f"{file} is too short to be a stored result: {len(whole)} bytes.")
    if not seal.startswith(_SEAL_MARK):
        raise DamagedFileError(f"{file} is incomplete, or was rewritten by another program: it has no seal.")
    if seal != _SEAL_MARK + hashlib.sha256(content).digest():
        raise DamagedFileError(f"{file} was damaged after it was stored: its bytes do not fit its seal.")
    dataset = _parse(content)
    found = dataset.attrs.get("format", 1)
    if found != FORMAT:
        age = "a newer" if found > FORMAT else "an older"
        raise OtherFormatError(
            f"{file} was written by {age} version of understudy ({dataset.attrs.get('understudy_version', 'unknown')}, "
            f"format {found}); this one reads format {FORMAT}. "
            + ("Update understudy to read it." if found > FORMAT else "Compute it again; plain xarray opens it.")
        )
    return dataset


@contextmanager
def _without_cluster_locks() -> Iterator[None]:
    """Disable cluster locks: Dask workers lock a file by its name, but a file in memory has none."""
    if "dask" not in sys.modules:
        yield
        return
    import dask

    with dask.config.set(scheduler="threads"):
        yield


def _parse(content: bytes) -> xr.Dataset:
    need("store")
    import xarray as xr

    with xr.open_dataset(io.BytesIO(content), engine="h5netcdf") as opened:
        return opened.load()


class Store:
    """A directory of results, one file per result. It is created on the first save.

    `directory` is stored as an absolute path, so that a worker with another working directory finds it.
    """

    def __init__(self, directory: str | os.PathLike[str]):
        self.directory = Path(directory).absolute()
        if os.path.lexists(self.directory) and not self.directory.is_dir():
            raise NotADirectoryError(
                f"A store is a directory; {self.directory} is a file, or a link that leads to no directory. "
                "Name another place."
            )
        files.remove_stale(self.directory, STALE_SECONDS)

    def __repr__(self) -> str:
        return f"Store({str(self.directory)!r})"

    def path(self, configuration: Mapping[str, Any]) -> Path:
        """The path of the result of `configuration`: `<kind>-<hash>.nc`, with its own `kind` or "result"."""
        kind = configuration.get("kind", "result")
        if not isinstance(kind, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", kind):
            raise ValueError(
                f"The configuration's kind begins a file name: letters, digits, '_', '-', '.'; received {kind!r}."
            )
        key = configuration_hash({"configuration": json.loads(canonical_json(configuration)), "format": FORMAT})
        return self.directory / f"{kind}-{key}.nc"

    def save(self, configuration: Mapping[str, Any], dataset: xr.Dataset) -> Path:
        """Store `dataset` as the result of `configuration`, atomically. An older result is replaced.

        The file is read back first. If netCDF changes the dataset (for example, objects that are not strings), this
        raises `ValueError` and stores nothing. If the disk is full, this raises `OSError`, and an older result is kept.
        """
        return write_result(self.path(configuration), configuration, dataset)

    def load(self, configuration: Mapping[str, Any]) -> xr.Dataset | None:
        """The stored result of `configuration`, in memory; None if there is none.

        A damaged file counts as none: it is renamed to `<name>.damaged`, and the reason is logged as a warning. A file
        of another format also counts as none, but is not renamed.
        """
        path = self.path(configuration)
        try:
            before = path.stat()
            return self._read_own(path, configuration)
        except FileNotFoundError:
            return None
        except OtherFormatError as error:
            _logger.warning("%s It counts as missing.", error)
            return None
        except DamagedFileError as error:
            aside = path.with_name(path.name + ".damaged")
            _logger.warning("%s It is moved to %s and will be computed again.", error, aside.name)
            try:
                # Another process may also have noticed, and stored a new file by now. Leave that one in place.
                if os.path.samestat(before, path.stat()):
                    os.replace(path, aside)
            except FileNotFoundError:
                pass
            return None

    def open(self, path: str | os.PathLike[str]) -> xr.Dataset:
        """The result in one file, in memory, checked. A relative `path` is inside the store.

        Raises `FileNotFoundError`, or `DamagedFileError` or `OtherFormatError` with the reason.
        """
        return read_result(self.directory / path)

    def entries(self) -> Iterator[dict[str, Any]]:
        """The configurations of all sound results, in the order of their file names; other files are skipped."""
        for path in sorted(self.directory.glob("*.nc")):
            try:
                configuration = json.loads(read_result(path).attrs["configuration"])
                if self.path(configuration) == path:
                    yield configuration
            except (DamagedFileError, OtherFormatError, OSError) as error:
                _logger.info("%s", error)

    def _read_own(self, path: Path, configuration: Mapping[str, Any]) -> xr.Dataset:
        dataset = read_result(path)
        if dataset.attrs["configuration"] != canonical_json(configuration):
            raise DamagedFileError(f"{path} holds the result of another configuration.")
        return dataset
