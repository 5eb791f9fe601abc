"""Optional parts of the package: which extra installs which library, and a clear message if one is missing.

The core (JAX, Equinox, NumPy, SciPy, Typer, Rich) computes and prints. Code that stores, draws, trains or serves calls
`need` before it computes anything, so that no result is lost because a library is missing.
"""

from importlib.util import find_spec

MODULES = {
    "plots": ("matplotlib",),
    "store": ("xarray", "h5netcdf", "h5py"),
    "cluster": ("dask", "distributed"),
    "train": ("optax",),
    "papers": ("jinja2", "matplotlib", "xarray", "h5netcdf", "h5py", "optax"),
    "proofs": ("flint",),
    "torch": ("torch",),
    "lab": ("starlette", "uvicorn", "websockets"),
}
"""The modules that each extra installs, its main module first."""


def need(*extras: str) -> None:
    """Raise `ModuleNotFoundError`, with the command that installs them, if a module of these extras is missing.

    **Arguments**

    - `extras`: names of extras, such as `"plots"`.

    >>> need("plots", "store")
    >>> need("plot")
    Traceback (most recent call last):
    KeyError: 'plot'
    """
    missing = {module: extra for extra in extras for module in MODULES[extra] if find_spec(module) is None}
    if missing:
        wanted = ",".join(dict.fromkeys(missing.values()))
        raise ModuleNotFoundError(
            f"This needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed. "
            f"Run: pip install 'understudy[{wanted}]'",
            name=next(iter(missing)),
        )
