"""Figures. Each is drawn by a function of results, which returns the figure.

Without axes a function makes a new figure. A function of one panel takes `ax=`. A function of several panels takes
`axes=`, as many as it has panels, in reading order. `fit` and `align` take `ax=` for their main panel alone.

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
    from understudy.plots.curves_figure import curves as curves
    from understudy.plots.explore_figure import explore as explore
    from understudy.plots.fit_figure import fit as fit
    from understudy.plots.grow_figure import grow as grow
    from understudy.plots.layers_figure import layers as layers
    from understudy.plots.merge_figure import merge as merge
    from understudy.plots.online_figure import online as online
    from understudy.plots.online_figure import phases as phases
    from understudy.plots.split_figure import split as split
    from understudy.plots.style import save as save
    from understudy.plots.sweep_figure import sweep as sweep

_FIGURES = {
    name: name
    for name in ("align", "branches", "curves", "explore", "fit", "grow", "layers", "merge", "online", "split", "sweep")
} | {"phases": "online"}
"""The module of each figure, without its ending."""


def __getattr__(name: str) -> object:
    if name in _FIGURES:
        _need("plots")
        return getattr(_import_module(f"understudy.plots.{_FIGURES[name]}_figure"), name)
    if name == "save":
        return _import_module("understudy.plots.style").save
    raise AttributeError(f"module 'understudy.plots' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_FIGURES, "save"]
