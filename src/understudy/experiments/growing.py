"""The description of a network that grows one neuron at a time, computed here or on a cluster."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from understudy import clusters
from understudy.clusters import WorkError
from understudy.experiments.collecting import Place
from understudy.experiments.data_fit import describe_fit
from understudy.experiments.description import array_fields, check_finite_array
from understudy.experiments.flow_fit import FlowFit
from understudy.surgery import grow
from understudy.surgery.grow import Stage


@dataclass(frozen=True, eq=False)
class Grow:
    """A network that grows by splitting neurons; see `understudy.surgery.grow`. It has no seeds.

    - `fit`: the description of the network to begin with, such as `Fit(teacher=8, student=1)`.
    - `student`: the last number of neurons of hidden layer `layer`.
    - `mu`: share of the first part of a split neuron; `push`: length of the push off the saddle.
    - `start`: flat parameters of `fit.task()` to begin with. Default: seed 0.
    """

    kind: ClassVar[str] = "grow"

    fit: FlowFit
    student: int
    layer: int = 0
    mu: float = 0.5
    push: float = 1e-2
    start: np.ndarray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.start is not None:
            object.__setattr__(self, "start", check_finite_array("start", self.start, 1))
        if not 0 < self.push < math.inf:
            raise ValueError(f"push is a positive length; received {self.push}.")

    def configuration(self) -> dict[str, Any]:
        """The description in JSON types."""
        told = {name: getattr(self, name) for name in _NUMBERS}
        start = {} if self.start is None else {"start": self.start}
        return {"kind": self.kind, "fit": self.fit.configuration(), **told, **array_fields(start)}

    def stages(self, watch: Callable[[Stage], None] | None = None) -> list[dict[str, Any]]:
        """Grow the network, here; one stage per width, in JSON types. `watch` is called with each `Stage`."""
        task = self.fit.task()
        reduced = task.reduce(task.starts([0])[0] if self.start is None else task.flatten(self.start))
        grown = grow(
            reduced.task,
            self.student,
            start=reduced.vectors,
            layer=self.layer,
            mu=self.mu,
            push=self.push,
            watch=watch,
        )
        return [describe_stage(stage, self.layer) for stage in grown]


_NUMBERS = ("student", "layer", "mu", "push")


def collect_stages(
    description: Grow, place: Place | None = None, watch: Callable[[Stage], None] | None = None
) -> list[dict[str, Any]]:
    """The stages of a growth, computed here, or on one worker of a cluster (where `watch` is not called)."""
    if place is None:
        return description.stages(watch)
    with clusters.connect(place.cluster, place.scheduler_file, place.workers or 1) as client:
        fit = description.fit
        item = (description.configuration(), fit.configuration(), dict(fit.arrays), description.start)
        ((_, found),) = clusters.compute(compute_stages, [item], client)
    if isinstance(found, WorkError):
        raise RuntimeError(f"{found.error}: {found.message}")
    return found


def compute_stages(
    item: tuple[Mapping[str, Any], Mapping[str, Any], dict[str, np.ndarray], np.ndarray | None],
) -> list[dict[str, Any]]:
    """Runs on a worker."""
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    configuration, fit, arrays, start = item
    return Grow(describe_fit(fit, arrays), **{n: configuration[n] for n in _NUMBERS}, start=start).stages()


def describe_stage(stage: Stage, layer: int = 0) -> dict[str, Any]:
    """A stage in JSON types; outgoing weights to several outputs are lists."""
    assert stage.task is not None
    hidden = stage.task.hidden_layer(stage.parameters, layer)
    return {
        "width": stage.width,
        "loss": stage.loss,
        "kind": stage.certificate.kind,
        "label": stage.structure.label,
        "gradient_norm": stage.certificate.gradient_norm,
        "least_eigenvalue": stage.certificate.least_eigenvalue,
        "averaging": stage.averaging,
        "norms": [float(x) for x in stage.norms],
        "outgoing": np.asarray(stage.outgoing).tolist(),
        "correlations_with_averaging": [float(x) for x in stage.correlations[stage.averaging]],
        "split_neuron": stage.split_neuron,
        "scenario": None if stage.matrices is None else stage.matrices.scenario,
        "pushed_along": stage.pushed_along,
        "incoming": np.asarray(hidden.incoming).tolist(),
        **({} if hidden.bias is None else {"bias": np.asarray(hidden.bias).tolist()}),
    }
