"""Figures. Each is drawn by a function of results (and of axes, where that makes sense), which returns the figure.

>>> import understudy as us
>>> runs = us.fit(us.Population(us.Teacher.orthonormal(3, dim=4), width=2), seeds=2)
>>> us.plots.fit(runs).savefig("fit.png")  # doctest: +SKIP
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from understudy.extras import need as _need

if TYPE_CHECKING:
    from understudy.plots.align_figure import align as align
    from understudy.plots.branches_figure import branches as branches
    from understudy.plots.explore_figure import explore as explore
    from understudy.plots.fit_figure import fit as fit
    from understudy.plots.grow_figure import grow as grow
    from understudy.plots.layers_figure import layers as layers
    from understudy.plots.merge_figure import merge as merge
    from understudy.plots.split_figure import split as split
    from understudy.plots.style import save as save
    from understudy.plots.sweep_figure import sweep as sweep

_FIGURES = ("align", "branches", "explore", "fit", "grow", "layers", "merge", "split", "sweep")


def __getattr__(name: str) -> object:
    if name in _FIGURES:
        _need("plots")
        return getattr(_import_module(f"understudy.plots.{name}_figure"), name)
    if name == "save":
        return _import_module("understudy.plots.style").save
    raise AttributeError(f"module 'understudy.plots' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_FIGURES, "save"]
