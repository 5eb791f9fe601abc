"""Drawing a claim's figure from its stored result, in one house style, as PNG and SVG."""

from typing import Any

from understudy.papers.claim import Claim
from understudy.papers.result import Result
from understudy.papers.workspace import Workspace

# The palette of Okabe & Ito (2008), made for the common colour deficiencies; without its yellow, which
# vanishes on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
SIZE = (7.0, 4.2)  # inches; a claim may change it with figure.set_size_inches

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


def draw(claim: Claim, result: Result, data: dict[str, object], workspace: Workspace) -> None:
    """Draw the claim's figure into the workspace; nothing for a claim without one."""
    if claim.figure is None or result.status == "failed":
        return
    import matplotlib as mpl
    from cycler import cycler
    from matplotlib.figure import Figure

    with mpl.rc_context({**STYLE, "axes.prop_cycle": cycler(color=COLOURS)}):
        figure = Figure(figsize=SIZE, layout="constrained")
        claim.figure(result.measurement(data), figure)
        for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
            path = workspace.figure(claim, result.scale, suffix)
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, metadata=metadata)
