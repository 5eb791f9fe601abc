"""Files that several processes write: atomic writes, locks, content hashes and canonical JSON.

Everything here works with Python's standard library alone, so that listing results needs no array library.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, SupportsFloat

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

STALE_LOCK_SECONDS = 600.0
"""A lock file this old was left by a process that was killed: no writer holds a lock for ten minutes."""

_LOCK_POLL_SECONDS = 0.02


def jsonable(value: Any, where: str = "value") -> Any:
    """Return `value` in plain JSON types: arrays and tuples become lists, keys become text.

    JSON has neither infinities nor NaN. They become the texts `"inf"`, `"-inf"` and `"nan"`. `where` names the value
    in error messages.

    >>> jsonable({"k": (2, 3), 4: float("nan")})
    {'k': [2, 3], '4': 'nan'}
    """
    if hasattr(value, "tolist") and not isinstance(value, bool | int | float | str):
        value = value.tolist()  # NumPy and JAX arrays and scalars, without importing either
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        value = float(value)  # np.float64 is a float whose repr is not one
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item, f"{where}[{i}]") for i, item in enumerate(value)]
    raise TypeError(
        f"{where} cannot be kept as JSON: received {value!r} of type {type(value).__name__}; "
        "give numbers, text, booleans, None, arrays, or lists and dictionaries of these."
    )


def finite_or_none(value: SupportsFloat) -> float | None:
    """Return a number, or None for NaN and infinities, which JSON cannot express."""
    number = float(value)
    return number if math.isfinite(number) else None


def canonical_json(value: Any, where: str = "value") -> str:
    """Return the one JSON text of `value`: keys sorted, floats by `repr`, no white space, ASCII.

    Tuples and NumPy arrays become lists, NumPy scalars Python numbers. The integer 1 and the float 1.0 stay
    different. Raises `TypeError` or `ValueError`, naming the place below `where`, for what JSON cannot hold.

    >>> canonical_json({"width": 4, "std": 0.1, "partition": (1, 2)})
    '{"partition":[1,2],"std":0.1,"width":4}'
    """
    return json.dumps(_strict(value, where), sort_keys=True, separators=(",", ":"))


def content_hash(value: Any) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of bytes, or of the canonical JSON of anything else.

    64 bits: two of a million values share a hash with probability 3e-8.

    >>> content_hash({"a": 1, "b": [0.5]}) == content_hash({"b": (0.5,), "a": 1})
    True
    """
    content = value if isinstance(value, bytes) else canonical_json(value).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def _strict(value: Any, where: str) -> Any:
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
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        if value.dtype.kind not in "biufU":
            raise TypeError(
                f"{where} is a NumPy value of dtype {value.dtype}; use booleans, integers, floats or strings."
            )
        return _strict(value.tolist(), where)
    if isinstance(value, list | tuple):
        return [_strict(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}; keys must be strings, e.g. {str(key)!r}.")
        return {key: _strict(item, f"{where}[{key!r}]") for key, item in value.items()}
    raise TypeError(
        f"{where} is {value!r} of type {type(value).__name__}, which cannot be written as JSON; "
        "use None, booleans, numbers, strings, NumPy arrays, and lists or dictionaries of them."
    )


def write_atomically(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Replace a file as a whole: a reader, or a crash at any moment, sees the old content or the new one.

    Text is written as UTF-8. Missing directories are made. `OSError` says which file could not be written; the old
    content is then untouched, and nothing is left behind.
    """
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a directory, so no file can be written there. Name another place.")
    temporary = temporary_name(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as opened:
            opened.write(content.encode() if isinstance(content, str) else content)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(temporary, file)
        _flush_directory(file.parent)
    except OSError as error:
        raise _named(error, file) from error
    finally:
        _remove(temporary)
    return file


def write_json(path: str | os.PathLike[str], content: Any) -> Path:
    """Write indented UTF-8 JSON, atomically."""
    return write_atomically(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def temporary_name(path: Path) -> Path:
    """Return a hidden name next to `path` that no other process uses; `remove_stale` deletes it if it is left
    behind."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")


def remove_stale(directory: Path, seconds: float, name: str = "*") -> None:
    """Delete temporary files of `name` in `directory` older than this: processes that were killed have left them."""
    for path in directory.glob(f".{name}.tmp"):
        try:
            if time.time() - path.lstat().st_mtime > seconds:
                path.unlink()
        except OSError:  # another process was quicker, or it is not ours to delete
            continue


def check_regular(path: str | os.PathLike[str]) -> Path:
    """Return `path` if it is a regular file; otherwise raise `OSError` that says what it is instead.

    Opening a named pipe would wait for a writer forever.
    """
    file = Path(path)
    try:
        mode = file.stat().st_mode
    except OSError as error:
        raise _named(error, file) from error
    if not stat.S_ISREG(mode):
        what = "a directory" if stat.S_ISDIR(mode) else "a named pipe" if stat.S_ISFIFO(mode) else "not a regular file"
        raise OSError(f"{file} is {what}, not a file that can be read. Name another one.")
    return file


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let one process at a time read, change and write `path` (a file or a directory).

    The lock is a file `.<name>.lock` next to `path`, which is deleted at the end. Where the system or the file system
    has no `flock`, creating a file `.<name>.held` is the lock; one that is older than ten minutes is taken over.
    """
    lock = Path(os.path.abspath(path))
    lock = lock.with_name(f".{lock.name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _lock_by_flock(lock)
    except OSError as error:
        raise _named(error, lock) from error
    if descriptor is None:
        lock = lock.with_suffix(".held")  # another name: `_lock_by_flock` opens and deletes the first one
        _lock_by_creation(lock)
    try:
        yield
    finally:
        _remove(lock)  # while the lock is held: whoever waits for it notices, see below
        if descriptor is not None:
            os.close(descriptor)


def _lock_by_flock(lock: Path) -> int | None:
    """Wait for the lock and return its descriptor; None where there is no `flock`."""
    if fcntl is None:
        return None  # type: ignore[unreachable]
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # The holder before us has deleted the file. If another process has made a new one, that one is the lock.
            if os.path.samestat(os.fstat(descriptor), os.stat(lock)):
                return descriptor
        except FileNotFoundError:
            pass
        except OSError:  # a file system without locks
            os.close(descriptor)
            _remove(lock)
            return None
        os.close(descriptor)


def _lock_by_creation(lock: Path) -> None:
    while True:
        try:
            os.close(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))
            return
        except (FileExistsError, PermissionError):  # Windows says the latter while the holder deletes it
            try:
                if time.time() - lock.stat().st_mtime > STALE_LOCK_SECONDS:
                    _remove(lock)
                    continue
            except FileNotFoundError:
                continue
            time.sleep(_LOCK_POLL_SECONDS)


def _named(error: OSError, file: Path) -> OSError:
    """`error` with a message that names the file: of a full disk, the system says only that."""
    reason = error.strerror or str(error)
    return type(error)(f"{file}: {reason}.") if error.errno is None else type(error)(error.errno, reason, str(file))


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # the directory is gone, or is not ours to change
        return


def _flush_directory(path: Path) -> None:
    """Wait until a directory's entries are on the disk, so that a rename survives a power cut."""
    if os.name == "nt":  # directories cannot be opened there
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
