"""Drawing a claim's figure from its stored result, in one house style, as PNG and SVG."""

from understudy.papers.claim import Claim
from understudy.papers.measurement import UNMEASURED
from understudy.papers.result import Result
from understudy.papers.workspace import Workspace
from understudy.plots.style import house_style

SIZE = (7.0, 4.2)  # inches; a claim may change it with figure.set_size_inches


def draw(claim: Claim, result: Result, data: dict[str, object], workspace: Workspace) -> None:
    """Draw the claim's figure into the workspace; nothing for a claim without one."""
    if claim.figure is None or result.status in UNMEASURED:
        return
    from matplotlib.figure import Figure

    with house_style():
        figure = Figure(figsize=SIZE, layout="constrained")
        claim.figure(result.measurement(data), figure)
        for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
            path = workspace.figure(claim, result.scale, suffix)
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, metadata=metadata)
