"""One look for every figure: colour-blind safe, readable at the size it is printed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


def colours(count: int) -> list[Any]:
    """As many different colours: the palette's first ones, or steps of viridis where there are more than it has."""
    if count <= len(COLOURS):
        return list(COLOURS[:count])
    import matplotlib as mpl

    return [mpl.colormaps["viridis"](0.95 * i / (count - 1)) for i in range(count)]


def save(figure: Any, stem: str | Path) -> list[Path]:
    """Write `stem`.png and `stem`.svg beside each other, each atomically; a dot in the name is part of it."""
    stem = Path(stem)
    paths = []
    with house_style():
        for ending, options in (("png", {}), ("svg", {"metadata": {"Date": None}})):
            content = io.BytesIO()
            figure.savefig(content, format=ending, **options)
            figure.set_layout_engine("none")  # what the first drawing has laid out holds for the second
            paths.append(write_atomically(stem.with_name(f"{stem.name}.{ending}"), content.getvalue()))
    return paths
