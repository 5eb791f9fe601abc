"""One style for every figure: safe for colour-blind readers, and legible at the printed size."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from understudy.files import write_atomically

# The palette of Okabe and Ito (2008), made for the common colour deficiencies; without its yellow, which vanishes on
# white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")

STYLE: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "axes.labelsize": 10.5,
    "figure.dpi": 100,
    "figure.facecolor": "white",
    "font.size": 10,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "savefig.dpi": 160,
    "svg.hashsalt": "understudy",  # the same result gives the same file
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house style."""
    import matplotlib as mpl
    from cycler import cycler

    with mpl.rc_context({**STYLE, "axes.prop_cycle": cycler(color=COLOURS)}):
        yield


def new_figure(width: float, height: float) -> Any:
    """An empty figure of this size in inches, which is not part of pyplot's state."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def given_axes(axes: Any, count: int) -> list[Any]:
    """Axes of the caller, as a list of `count`; a nested array is read row by row.

    >>> given_axes([["top"], ["bottom"]], 2)
    ['top', 'bottom']
    """
    found = list(np.asarray(axes, dtype=object).ravel())
    if len(found) != count:
        raise ValueError(f"This figure has {count} panels; received {len(found)} axes. Give one for each panel.")
    return found


def show_as_equal(axes: Any, values: Any) -> None:
    """Widen the y axis if all values are equal but for rounding: rounding is not worth a picture.

    A shift such as "+2.4e-1" beside the axis is written out.
    """
    values = np.asarray(values, float)
    if np.ptp(values) < 1e-6 * max(float(np.abs(values).max()), 1e-6):
        centre = float(values.mean())
        reach = 0.1 * abs(centre) if abs(centre) > 1e-12 else 1e-3
        axes.set_ylim(centre - reach, centre + reach)
    axes.ticklabel_format(axis="y", useOffset=False)


def colours(count: int) -> list[Any]:
    """This many different colours: the first ones of the palette, or steps of viridis if the palette has too few."""
    if count <= len(COLOURS):
        return list(COLOURS[:count])
    import matplotlib as mpl

    return [mpl.colormaps["viridis"](0.95 * i / (count - 1)) for i in range(count)]


def save(figure: Any, stem: str | Path) -> list[Path]:
    """Write `stem`.png and `stem`.svg, each atomically. A dot in `stem` is part of the name."""
    stem = Path(stem)
    paths = []
    with house_style():
        for ending, options in (("png", {}), ("svg", {"metadata": {"Date": None}})):
            content = io.BytesIO()
            figure.savefig(content, format=ending, **options)
            figure.set_layout_engine("none")  # the second drawing uses the layout of the first
            paths.append(write_atomically(stem.with_name(f"{stem.name}.{ending}"), content.getvalue()))
    return paths
