"""Experiments: a validated description, one way to compute it here or on a cluster, stored as rows, one per seed."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.experiments.aligning.experiment import Experiment as Align
    from understudy.experiments.collecting import Place as Place
    from understudy.experiments.collecting import collect_rows as collect_rows
    from understudy.experiments.data_fit import DataFit as DataFit
    from understudy.experiments.fit import Fit as Fit
    from understudy.experiments.fit_seeds import collect_fit as collect_fit
    from understudy.experiments.growing import Grow as Grow
    from understudy.experiments.opening import open as open

_HOMES = {
    "Align": ("aligning.experiment", "Experiment"),
    "DataFit": ("data_fit", "DataFit"),
    "Fit": ("fit", "Fit"),
    "Grow": ("growing", "Grow"),
    "Place": ("collecting", "Place"),
    "collect_fit": ("fit_seeds", "collect_fit"),
    "collect_rows": ("collecting", "collect_rows"),
    "open": ("opening", "open"),
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        module, attribute = _HOMES[name]
        return getattr(_import_module(f"understudy.experiments.{module}"), attribute)
    raise AttributeError(f"module 'understudy.experiments' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_HOMES)
