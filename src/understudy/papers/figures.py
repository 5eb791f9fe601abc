"""Drawing a claim's figure from its stored result, in one house style, as PNG and SVG."""

from typing import TYPE_CHECKING

from understudy.papers.claim import Claim
from understudy.papers.measurement import UNMEASURED
from understudy.papers.result import Result
from understudy.papers.workspace import Workspace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (7.0, 4.2)  # inches; a claim may change it with figure.set_size_inches


def drawn(claim: Claim, result: Result, data: dict[str, object]) -> "Figure | None":
    """The claim's figure; None for a claim without one. Call and save it within `house_style`."""
    if claim.figure is None or result.status in UNMEASURED:
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    claim.figure(result.measurement(data), figure)
    return figure


def draw(claim: Claim, result: Result, data: dict[str, object], workspace: Workspace) -> None:
    """Draw the claim's figure into the workspace; nothing for a claim without one."""
    from understudy.plots.style import house_style

    with house_style():
        figure = drawn(claim, result, data)
        if figure is None:
            return
        for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
            path = workspace.figure(claim, result.scale, suffix)
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, metadata=metadata)
