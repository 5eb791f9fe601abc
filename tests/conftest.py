"""Every test runs with 64 bits, jaxtyping annotations checked by beartype, and no implicit rank promotion."""

import tempfile
from pathlib import Path

import jax
import pytest
from jaxtyping import install_import_hook

# One compilation cache for all workers of a run: xdist hands them the same run identity.
HOOK = install_import_hook("understudy", "typechecker.check")


def pytest_configure(config):
    run = getattr(config, "workerinput", {}).get("testrunuid")
    if run is not None:
        jax.config.update("jax_compilation_cache_dir", str(Path(tempfile.gettempdir()) / f"understudy-jax-{run}"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


@pytest.fixture(autouse=True)
def strict_ranks():
    with jax.numpy_rank_promotion("raise"):
        yield
