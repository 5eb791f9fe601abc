"""Compiled programs that outlive the process: the next one neither traces nor compiles them.

JAX's own cache keeps compiled programs too, but it has to trace and lower a program in order to find it. For a small
fit this takes longer than the computation. Here the name of a program is known without tracing: the function, the
shapes of its arrays, everything else in its arguments, the source of this package, the versions of JAX and Equinox, and
the processor.

A program is kept only if everything in its arguments is defined by the rooms of this package that are part of its name,
or by the libraries. Functions of a user may change without a trace in their names; they are compiled by JAX as always.

Like those in JAX's cache, the files are native code in the user's own cache directory, and are trusted like it.
"""

import hashlib
import io
import os
import pickle
import platform
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache, update_wrapper
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import equinox as eqx
import jax
import numpy as np

from understudy.compilation import cache_directory
from understudy.files import write_atomically

_ROOMS = (
    "activations.py",
    "formulas.py",
    "gaussian",
    "kept_programs.py",
    "networks",
    "numbers.py",
    "oracles",
    "rays.py",
    "tasks",
    "dynamics",
    "points",
    "theory",
)
"""What of this package programs are made from: its source is part of their names."""

_LIBRARIES = ("jax", "jaxlib", "equinox", "numpy", "builtins", "functools", "collections")
"""Libraries whose versions are part of the names."""

_OPTIONS = ("jax_enable_x64", "jax_debug_nans", "jax_default_matmul_precision")
_LEAST_TIME = "jax_persistent_cache_min_compile_time_secs"

_FORGOTTEN = 30 * 24 * 3600.0
"""Seconds after which programs of other versions are removed."""

_Program = Callable[[list[Any]], Any]


class Kept:
    """A function that is compiled as by `eqx.filter_jit`, and whose programs are kept on disk."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function
        self._otherwise = eqx.filter_jit(function)
        self._programs: dict[Any, _Program | None] = {}
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        leaves, structure = jax.tree.flatten(arguments)
        arrays = [x for x in leaves if _is_array(x)]
        if any(isinstance(x, jax.core.Tracer) for x in arrays):
            return self._function(*arguments)
        kind = structure, tuple(_shape(x) if _is_array(x) else x for x in leaves)
        if kind not in self._programs:
            return self._call_first(kind, arguments, arrays)
        program = self._programs[kind]
        return self._otherwise(*arguments) if program is None else program(arrays)

    def _call_first(self, kind: Any, arguments: tuple[Any, ...], arrays: list[Any]) -> Any:
        """Find the program on disk, or compile it and put it there, and run it."""
        directory = _directory()
        name = None if directory is None else _name(self._function, arguments, arrays)
        if directory is None or name is None:
            self._programs[kind] = None
            return self._otherwise(*arguments)
        path = directory / name
        try:
            program = _load(path, len(arrays))
            result = jax.block_until_ready(program(arrays))  # what is damaged may show only when it runs
        except FileNotFoundError:
            pass
        except Exception:  # whatever a damaged file does
            path.unlink(missing_ok=True)
        else:
            self._programs[kind] = program
            return result
        program = self._programs[kind] = _compile(self._function, arguments, arrays, path)
        return program(arrays)


def kept(function: Callable[..., Any]) -> Kept:
    """Compile this function of one of the rooms above, and keep its programs. It takes positional arguments."""
    return Kept(function)


def _is_array(x: Any) -> bool:
    return isinstance(x, jax.Array | np.ndarray)


def _shape(array: Any) -> tuple[Any, ...]:
    return array.shape, array.dtype, getattr(array, "weak_type", False)


def _setting(name: str) -> Any:
    return getattr(jax.config, name)


def _directory() -> Path | None:
    """Where programs are kept; None if the cache directory is not ours, or the device is not one CPU."""
    chosen = _setting("jax_compilation_cache_dir")
    if not chosen or Path(chosen) != cache_directory() / "compiled":
        return None
    if jax.default_backend() != "cpu" or jax.device_count() != 1:
        return None
    return cache_directory() / "programs" / _surroundings()


@lru_cache(maxsize=1)
def _surroundings() -> str:
    """A hash of everything that programs depend on besides their functions and arguments."""
    words = jax.__version__, jax.lib.__version__, eqx.__version__, np.__version__, platform.python_version()
    machine = platform.machine(), _processor(), str(os.cpu_count()), os.environ.get("XLA_FLAGS", "")
    found = hashlib.sha256("\0".join((*words, *machine)).encode())
    root = Path(__file__).parent
    for room in _ROOMS:
        for file in sorted((root / room).rglob("*.py")) or [root / room]:
            found.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:24]


def _processor() -> str:
    """The processor's features, where the system lists them: programs use all that the processor has."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(sorted({x for x in lines if x.startswith(("model name", "flags", "Features"))}))


class _Foreign(Exception):
    """Something that is defined elsewhere than in `_ROOMS` and `_LIBRARIES`."""


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type | FunctionType | BuiltinFunctionType):
            package, _, rest = (obj.__module__ or "builtins").partition(".")
            room = rest.split(".")[0]
            if package not in _LIBRARIES and not (package == "understudy" and {room, f"{room}.py"} & set(_ROOMS)):
                raise _Foreign(obj.__module__)
        return NotImplemented


def _name(function: Callable[..., Any], arguments: tuple[Any, ...], arrays: list[Any]) -> str | None:
    """The name of a program, or None if something in its arguments is not known by name."""
    fixed = eqx.filter(arguments, _is_array, inverse=True)
    config = [str(_setting(option)) for option in _OPTIONS]
    content = function.__module__, function.__qualname__, config, [repr(_shape(x)) for x in arrays], fixed
    written = io.BytesIO()
    try:
        _Pickler(written, protocol=5).dump(content)
    except (_Foreign, pickle.PicklingError, AttributeError, TypeError):
        return None
    return hashlib.sha256(written.getvalue()).hexdigest()


def _compile(function: Callable[..., Any], arguments: tuple[Any, ...], arrays: list[Any], path: Path) -> _Program:
    from jax.experimental.serialize_executable import serialize

    leaves, structure = jax.tree.flatten(arguments)
    shapes: list[Any] = []

    def kept_program(*given: Any) -> list[Any]:
        left = iter(given)
        out = function(*jax.tree.unflatten(structure, [next(left) if _is_array(x) else x for x in leaves]))
        shapes.append(jax.tree.map(lambda _: 0, out))
        return jax.tree.leaves(out)

    lowered = jax.jit(kept_program).lower(*arrays)
    with _apart_from_jax():
        compiled = lowered.compile()
    payload, _, _ = serialize(compiled)
    with suppress(OSError, pickle.PicklingError, AttributeError, TypeError):  # then nothing is kept
        if not path.parent.exists():
            _forget(path.parent.parent)
        write_atomically(path, pickle.dumps((payload, shapes[-1])))
    return _called(compiled, shapes[-1])


@contextmanager
def _apart_from_jax() -> Iterator[None]:
    """Keep what is compiled here out of JAX's own cache: what comes from there cannot be written to disk again."""
    least = _setting(_LEAST_TIME)
    jax.config.update(_LEAST_TIME, float("inf"))
    try:
        yield
    finally:
        jax.config.update(_LEAST_TIME, least)


def _forget(directory: Path) -> None:
    """Remove programs of versions that have not been used for a long time."""
    for old in directory.glob("*"):
        if old.stat().st_mtime < time.time() - _FORGOTTEN:
            shutil.rmtree(old, ignore_errors=True)


def _load(path: Path, count: int) -> _Program:
    from jax.experimental.serialize_executable import deserialize_and_load

    payload, shape = pickle.loads(path.read_bytes())
    _find_lapack()
    given = jax.tree.structure((tuple(range(count)), {}))
    return _called(deserialize_and_load(payload, given, jax.tree.structure(jax.tree.leaves(shape))), shape)


@lru_cache(maxsize=1)
def _find_lapack() -> None:
    """Let JAX look up LAPACK, which it does when a program that uses it is lowered. Without it programs crash."""
    jax.jit(jax.lax.linalg.cholesky).lower(np.eye(1))


def _called(compiled: Any, shape: Any) -> _Program:
    out = jax.tree.structure(shape)
    return lambda arrays: jax.tree.unflatten(out, compiled(*arrays))
