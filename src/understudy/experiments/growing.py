"""A student that is grown one neuron at a time, in words, computed here or on a cluster."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from understudy import clusters
from understudy.clusters import WorkError
from understudy.experiments.collecting import Place
from understudy.experiments.description import array_fields, check_finite_array
from understudy.networks import Teacher, TwoLayer
from understudy.surgery import grow
from understudy.surgery.grow import Stage

_ARRAYS = {"teacher_incoming": 2, "teacher_outgoing": 1, "start_incoming": 2, "start_outgoing": 1}


@dataclass(frozen=True, eq=False)
class Grow:
    """A student grown to `student` neurons by splitting, see `understudy.surgery.grow`. It has no seeds.

    - `activation`: smooth; `mu`: share of the first part of a split neuron; `push`: length of the push off the saddle.
    - `arrays`: the teacher as `teacher_incoming` (k, d) and `teacher_outgoing` (k,), and the student to begin with as
      `start_incoming` and `start_outgoing`, if not with one neuron.
    """

    kind: ClassVar[str] = "grow"

    student: int
    activation: str
    mu: float = 0.5
    push: float = 1e-2
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        wrong = set(self.arrays) - set(_ARRAYS)
        if wrong or "teacher_incoming" not in self.arrays or "teacher_outgoing" not in self.arrays:
            raise ValueError(f"arrays are a teacher's and a start's, see `Grow`; received {', '.join(self.arrays)}.")
        checked = {name: check_finite_array(name, x, _ARRAYS[name]) for name, x in self.arrays.items()}
        object.__setattr__(self, "arrays", MappingProxyType(checked))
        if not 0 < self.push < math.inf:
            raise ValueError(f"push is a positive length; received {self.push}.")
        if self.make_teacher().activation.smoothness == 0:
            raise ValueError(f"grow needs a smooth activation: at a split point {self.activation} has no Hessian.")

    def configuration(self) -> dict[str, Any]:
        """The description in JSON types."""
        told = {"kind": self.kind, "student": self.student, "activation": self.activation}
        return told | {"mu": self.mu, "push": self.push} | array_fields(self.arrays)

    def make_teacher(self) -> Teacher:
        """The teacher that is described."""
        return Teacher(self.arrays["teacher_incoming"], self.arrays["teacher_outgoing"], self.activation)

    def stages(self, watch: Callable[[Stage], None] | None = None) -> list[dict[str, Any]]:
        """Grow the student, here; one stage per width, in JSON types. `watch` is called with each `Stage`."""
        start = None
        if "start_incoming" in self.arrays:
            start = TwoLayer(self.arrays["start_incoming"], self.arrays["start_outgoing"])
        grown = grow(self.make_teacher(), self.student, start=start, mu=self.mu, push=self.push, watch=watch)
        return [describe_stage(stage) for stage in grown]


def collect_stages(
    description: Grow, place: Place | None = None, watch: Callable[[Stage], None] | None = None
) -> list[dict[str, Any]]:
    """The stages of a growth, computed here or on one worker of a cluster (where there is nothing to watch)."""
    if place is None:
        return description.stages(watch)
    with clusters.connect(place.cluster, place.scheduler_file, place.workers or 1) as client:
        item = (description.configuration(), dict(description.arrays))
        ((_, found),) = clusters.compute(compute_stages, [item], client)
    if isinstance(found, WorkError):
        raise RuntimeError(f"{found.error}: {found.message}")
    return found


def compute_stages(item: tuple[dict[str, Any], dict[str, np.ndarray]]) -> list[dict[str, Any]]:
    """Runs on a worker."""
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    configuration, arrays = item
    told = {name: configuration[name] for name in ("student", "activation", "mu", "push")}
    return Grow(**told, arrays=arrays).stages()


def describe_stage(stage: Stage) -> dict[str, Any]:
    """A stage in JSON types."""
    return {
        "width": stage.width,
        "loss": stage.loss,
        "kind": stage.certificate.kind,
        "label": stage.structure.label,
        "gradient_norm": stage.certificate.gradient_norm,
        "least_eigenvalue": stage.certificate.least_eigenvalue,
        "averaging": stage.averaging,
        "norms": [float(x) for x in stage.norms],
        "outgoing": [float(x) for x in stage.outgoing],
        "correlations_with_averaging": [float(x) for x in stage.correlations[stage.averaging]],
        "split_neuron": stage.split_neuron,
        "scenario": None if stage.matrices is None else stage.matrices.scenario,
        "pushed_along": stage.pushed_along,
        "incoming": [[float(x) for x in row] for row in stage.parameters.incoming],
    }
