"""A line on the terminal while a large library is loaded, which takes about a second."""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

LARGE = {"jax": "JAX", "torch": "PyTorch"}
"""Libraries that take long to import, with their names."""


class Announcer(MetaPathFinder):
    """Finds the libraries of `LARGE` as usual; says so before it loads the first of them, and erases that after."""

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

        def announced(module: Any) -> None:
            sys.meta_path.remove(self)
            print(f"loading {LARGE[fullname]} …", end="", file=sys.stderr, flush=True)
            try:
                load(module)
            finally:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)

        spec.loader.exec_module = announced  # type: ignore[method-assign]
        return spec


def announce_loading() -> None:
    """From now on, say on a terminal when a large library is loaded."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        sys.meta_path.insert(0, Announcer())
