"""Keep compiled programs on disk, so that each is compiled only once."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """$UNDERSTUDY_CACHE, or `understudy` in $XDG_CACHE_HOME, or in ~/.cache."""
    named = os.environ.get("UNDERSTUDY_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "understudy"


def keep_compiled_programs() -> None:
    """Let JAX store what it compiles in the cache directory, so that the next process need not compile it again.

    A cache directory that is already set, by `JAX_COMPILATION_CACHE_DIR` or in `jax.config`, is not changed. If the
    directory cannot be created, nothing is cached.
    """
    import jax

    if getattr(jax.config, "jax_compilation_cache_dir", None):
        return
    directory = cache_directory() / "compiled"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
