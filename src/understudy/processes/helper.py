"""One helper process. This module starts it and is what it runs. It ends when its parent ends.

Helpers are started with `python -c` rather than by `multiprocessing`, which would import the user's script again: a
script without `if __name__ == "__main__":` would then start itself. Messages are pickled, with a length in front.
Functions of the user's script are pickled by value (cloudpickle).
"""

from __future__ import annotations

import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
import traceback
from typing import IO, Any

from understudy.processes.cores import JOBS

_IDLE_SECONDS = 120.0
"""A helper ends after this many idle seconds."""

_ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", JOBS)}
_START = "from understudy.processes.helper import work; work()"


class HelperDiedError(Exception):
    """A helper process ended before it had answered."""


class Helper:
    """The parent's side of one process."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            start_new_session=True,  # Ctrl-C is for the parent, which ends its helpers
        )
        self.greeted = False

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.poll() is None

    def send(self, message: bytes) -> None:
        """Send a pickled message."""
        assert self.process.stdin is not None
        try:
            _write(self.process.stdin, message)
        except OSError as error:
            raise HelperDiedError from error

    def receive(self) -> Any:
        """The next message, waiting for it."""
        assert self.process.stdout is not None
        try:
            return pickle.loads(_read(self.process.stdout))
        except (EOFError, OSError, ValueError) as error:
            raise HelperDiedError(f"exit code {self.process.poll()}") from error

    def end(self) -> None:
        """Kill the process, and wait until it is gone."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:  # something was still to be sent
                continue


def environment() -> dict[str, str]:
    """One thread for linear algebra, the modules that this process sees, and its cache of compiled programs."""
    told = {**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    jax = sys.modules.get("jax")
    directory = None if jax is None else jax.config.jax_compilation_cache_dir
    if directory:
        told["JAX_COMPILATION_CACHE_DIR"] = str(directory)
        for name in ("jax_persistent_cache_min_compile_time_secs", "jax_persistent_cache_min_entry_size_bytes"):
            told[name.upper()] = str(getattr(jax.config, name))  # type: ignore[union-attr]
    return told


def work() -> None:
    """The helper's side: answer (function, items) with the values of every `function(item)`, until the parent ends.

    A thread reads what the parent sends, so that the end of the parent, even by `kill -9`, ends this process at once.
    """
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the work prints must not come between the messages
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                inbox.put(_read(sys.stdin.buffer))
        except (EOFError, OSError):
            os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        try:
            message = inbox.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            os._exit(0)
        try:
            function, items = pickle.loads(message)
            for item in items:
                for value in function(item):
                    _write(out, pickle.dumps(("value", value)))
            _write(out, pickle.dumps(("end", None)))
        except BrokenPipeError:
            os._exit(1)
        except Exception as error:
            _write(out, _described(error))


def _described(error: Exception) -> bytes:
    """The exception if it can be pickled and unpickled, else a RuntimeError with its text."""
    error.add_note("".join(traceback.format_exception(error)))
    try:
        told = pickle.dumps(("error", error))
        pickle.loads(told)
    except Exception:
        return pickle.dumps(("error", RuntimeError(f"{type(error).__name__}: {error}")))
    return told


def _write(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(struct.pack("<Q", len(message)))
    pipe.write(message)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes:
    size = pipe.read(8)
    if len(size) < 8:
        raise EOFError
    (length,) = struct.unpack("<Q", size)
    message = pipe.read(length)
    if len(message) < length:
        raise EOFError
    return message
