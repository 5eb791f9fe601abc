"""A line on standard error while a large library is loaded, which takes about a second."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

LARGE = {"jax": "JAX", "torch": "PyTorch"}
"""Libraries that take long to import, with their names."""
PATIENCE = 0.8
"""Seconds of loading after which a line is written where there is no terminal."""


@contextmanager
def announced(name: str) -> Iterator[None]:
    """Say that a library is being loaded: on a terminal while it is, elsewhere only if it takes long."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        print(f"loading {name} …", end="", file=sys.stderr, flush=True)
        try:
            yield
        finally:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        return
    later = threading.Timer(PATIENCE, print, (f"loading {name} …",), {"file": sys.stderr, "flush": True})
    later.daemon = True
    later.start()
    try:
        yield
    finally:
        later.cancel()


class Announcer(MetaPathFinder):
    """Finds the libraries of `LARGE` as usual; says so when it loads the first of them."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Called by Python for every module that is imported."""
        if fullname not in LARGE:
            return None
        sys.meta_path.remove(self)  # the search below must not come here again
        spec = importlib.util.find_spec(fullname)
        sys.meta_path.insert(0, self)  # many ask for a module without loading it
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def loaded(module: Any) -> None:
            sys.meta_path.remove(self)
            with announced(LARGE[fullname]):
                load(module)

        spec.loader.exec_module = loaded  # type: ignore[method-assign]
        return spec


def announce_loading() -> None:
    """From now on, say when a large library is loaded."""
    sys.meta_path.insert(0, Announcer())
