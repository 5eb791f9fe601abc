"""Trained students of one setting, shared by the claims that look at them; at full scale kept, so that an
interrupted run goes on.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from understudy.papers.claim import Progress, Settings

if TYPE_CHECKING:
    import xarray as xr

TWO_LAYER_QUICK: dict[str, Any] = {
    "teacher": [8],
    "dim": 20,
    "outputs": 10,
    "samples": 1000,
    "evaluation": 1000,
    "steps": 300,
    "epochs": 20,
    "seeds": 8,
    "keep": False,
}
"""A two-layer setting of seconds: what a claim at quick scale trains."""

TWO_LAYER_FULL: dict[str, Any] = {
    "dim": 100,
    "outputs": 50,
    "samples": 10_000,
    "evaluation": 10_000,
    "steps": 1000,
    "epochs": 100,
    "seeds": 32,
    "keep": True,
}
"""The paper's two-layer setting."""


def train_cells(
    settings: Settings, overs: list[float], polarities: list[float], progress: Progress, **more: Any
) -> dict[tuple[float, float], xr.Dataset]:
    """Rows of every (polarity, over) of the settings, with what is said about the experiment in `more`."""
    found = {}
    cells = [(p, o) for p in polarities for o in overs]
    for number, (p, o) in enumerate(cells):

        def tell(share: float, number: int = number, p: float = p, o: float = o) -> None:
            progress((number + share) / len(cells), f"p = {p:g}, {o:g}x")

        tell(0.0)
        found[(p, o)] = train(settings, over=o, polarity=p, tell=tell, **more)
    return found


def experiment_of(settings: Settings, **more: Any) -> Any:
    """The experiment that settings describe: fields of `Experiment`, and `epochs` for the usual schedule of records."""
    from understudy.experiments.aligning import Experiment, schedule

    told = {**settings, **more}
    if "record" not in told:
        told["record"] = schedule(int(told["epochs"]))
    return Experiment.of(told)


def train(settings: Settings, *, tell: Any = None, **more: Any) -> xr.Dataset:
    """Rows of one experiment: from memory, with `keep` from where cells are kept, or trained."""
    experiment = experiment_of(settings, **more)
    return _train(experiment, int(settings["seeds"]), bool(settings.get("keep")), _AnyReport(tell))


class _AnyReport:
    """A report of progress that counts as equal to any other, so that it does not matter to the memory of results."""

    def __init__(self, tell: Any):
        self.tell = tell

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _AnyReport)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=32)
def _train(experiment: Any, seeds: int, keep: bool, progress: _AnyReport) -> Any:
    from understudy.experiments.aligning import collect, collect_on_cluster
    from understudy.papers.cells import cell_store, remote_place

    place = remote_place()
    store = cell_store(collect) if keep or place is not None else None
    if place is None or store is None:
        return collect(experiment, range(seeds), store, progress=progress.tell)

    def tell(p: Any) -> None:
        if progress.tell is not None:
            progress.tell((p.done + p.reused) / p.total)

    (rows,) = collect_on_cluster(
        [experiment],
        range(seeds),
        store,
        cluster=place.cluster,
        scheduler_file=place.scheduler_file,
        progress=tell,
    )
    return rows


def unit_rows(network: Any) -> Any:
    """Unit vectors of the lowest layer's weights with their biases."""
    import numpy as np

    rows = np.concatenate([np.asarray(network.weights[0]), np.asarray(network.biases[0])[:, None]], axis=1)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
