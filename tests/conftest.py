"""Every test runs with 64 bits, jaxtyping annotations checked by beartype, and no implicit rank promotion."""

import os
import shutil
import tempfile

import equinox as eqx
import jax
import pytest
from jaxtyping import install_import_hook
from threadpoolctl import threadpool_limits

from typechecker import check_fields

# Where arrays live; the ledger, the store and the commands check their own input and say more about it.
ROOMS = (
    "activations",
    "alignment",
    "dynamics",
    "fitting",
    "gaussian",
    "regularised",
    "networks",
    "online",
    "points",
    "tasks",
    "theory",
)
install_import_hook([f"understudy.{room}" for room in ROOMS], "typechecker.check")
eqx.Module.__check_init__ = check_fields  # Equinox calls it after every constructor

threadpool_limits(1)  # workers share the cores: contended BLAS threads cost ten times what they save
CACHE = "UNDERSTUDY_TEST_CACHE"
STATES: dict = {}


def pytest_configure(config):
    """Workers of one run share what they compile; the next run does too if it is given the same directory, and otherwise begins anew."""
    if CACHE not in os.environ:
        os.environ[CACHE] = config.own_cache = tempfile.mkdtemp(prefix="understudy-jax-")
    jax.config.update("jax_compilation_cache_dir", os.environ[CACHE])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def pytest_unconfigure(config):
    if hasattr(config, "own_cache"):
        shutil.rmtree(config.own_cache, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items):
    """Of a test marked `few(n)` the first n cases stay; the others are thorough ones."""
    seen: dict = {}
    for item in items:
        if (few := item.get_closest_marker("few")) and not item.get_closest_marker("thorough"):
            name = (item.path, item.originalname)
            seen[name] = seen.get(name, 0) + 1
            if seen[name] > few.args[0]:
                item.add_marker("thorough")


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_programs():
    """Drop what a module has compiled: a process with thousands of programs reaches the system's limit of mapped files
    and crashes inside the compiler. What was slow to compile is read again from the cache on disk."""
    yield
    jax.clear_caches()


@pytest.fixture(autouse=True)
def strict_ranks():
    with jax.numpy_rank_promotion("raise"):
        yield


@pytest.fixture(autouse=True)
def same_numbers_in_any_order(request):
    """A module's RNG begins every test in the same state, whichever tests ran before."""
    rng = getattr(request.module, "RNG", None)
    if rng is not None:
        rng.bit_generator.state = STATES.setdefault(request.module.__name__, rng.bit_generator.state)
