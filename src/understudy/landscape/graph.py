"""The critical points of a task and how they join: what `explore` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.points import Certificate
from understudy.tasks.task import Task

if TYPE_CHECKING:
    import xarray as xr

    from understudy.landscape.tree import Basin


@dataclass(frozen=True)
class CriticalPoint:
    """One critical point, which stands for all its symmetric copies.

    - `number`: its place in `graph.points`, from 0; points are in the order of their losses.
    - `loss`, `index` (number of negative eigenvalues), `kind` (the certificate's verdict), `label` (of the structure).
    - `parameters`: the point. `orbit`: how many symmetric copies it has, itself included; None if not known.
    - `family`: the dimension of the set of equivalent networks that it lies in (duplicated, silent or dead neurons),
      apart from continuous symmetries. 0 for an isolated point. All points of a family count as one.
    - `degenerate`: whether zero eigenvalues are left that neither symmetries nor a family explain.
    - `indices`: the indices found in different pieces of a family; `index` is the least of them.
    - `found`: how many random searches ended here; `reached`: how many descents from saddles, and searches of other
      kinds.
    """

    number: int
    loss: float
    index: int
    kind: str
    label: str
    parameters: Any = field(repr=False)
    orbit: int | None
    family: int
    degenerate: bool
    indices: tuple[int, ...]
    found: int
    reached: int
    certificate: Certificate = field(repr=False)

    @property
    def isolated(self) -> bool:
        """Whether no other critical point is nearby, up to continuous symmetries."""
        return self.family == 0 and not self.degenerate

    def summary(self) -> dict[str, Any]:
        """The point in plain numbers and words, as `understudy explore --json` prints it."""
        c = self.certificate
        return {
            "number": self.number,
            "kind": self.kind,
            "index": self.index,
            "loss": self.loss,
            "label": self.label,
            "orbit": self.orbit,
            "family": self.family,
            "degenerate": self.degenerate,
            "indices": list(self.indices),
            "found": self.found,
            "reached": self.reached,
            "gradient_norm": float(c.gradient_norm),
            "least_eigenvalue": float(c.least_eigenvalue),
            "zeros": int(c.zeros),
        }


@dataclass(frozen=True)
class Connection:
    """Both sides of a saddle of index 1, followed down by the gradient flow.

    - `saddle`: the number of the saddle; `ends`: the numbers of the two points reached, None for a way to infinity.
    - `certified`: whether each end is a certified critical point, or certified to be at infinity, and pushes of two
      sizes agree on it.
    - `words`: what happened on each side.
    """

    saddle: int
    ends: tuple[int | None, int | None]
    certified: bool
    words: tuple[str, str]


@dataclass(frozen=True)
class Completeness:
    """How complete the list is.

    - `starts`: searches that were run; `converged`: those that ended at a critical point; `endings`: what became of the
      others.
    - `classes`: how many classes the searches found; `once`, `twice`: how many of them were found once and twice.
    - `estimate`: Chao's lower estimate of the number of classes that such searches can find,
      classes + once (once - 1) / (2 (twice + 1)) (Chao 1984).
    - `euler`: Σ (-1)^index over all points with their copies; `expected`: what Morse theory says it is. Either is None
      if it is not known; `reason` says why, or why it is known.
    """

    starts: int
    converged: int
    endings: Mapping[str, int]
    classes: int
    once: int
    twice: int
    estimate: float
    euler: int | None
    expected: int | None
    reason: str

    @property
    def balanced(self) -> bool | None:
        """Whether the Morse count comes out as it must; None if there is no count."""
        return None if self.euler is None or self.expected is None else self.euler == self.expected


@dataclass(frozen=True, repr=False)
class Graph:
    """Critical points up to symmetry, and how saddles of index 1 join them. It prints as a table.

    - `points`: one per class, least loss first; `connections`: one per saddle of index 1, several per family.
    - `completeness`: evidence for and against the list being complete.
    - `task`: what was explored, None if a stored graph does not say; `about`: the task in a few words.
    - `notes`: what the list leaves out.
    """

    points: tuple[CriticalPoint, ...]
    connections: tuple[Connection, ...]
    completeness: Completeness
    task: Task | None
    about: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    configuration: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        from understudy.landscape.table import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from understudy.landscape.table import as_html

        return as_html(self)

    @property
    def minima(self) -> tuple[CriticalPoint, ...]:
        """The minima."""
        return tuple(p for p in self.points if p.kind == "minimum")

    @property
    def saddles(self) -> tuple[CriticalPoint, ...]:
        """Every point that is not a minimum."""
        return tuple(p for p in self.points if p.kind != "minimum")

    def tree(self) -> list[Basin]:
        """The disconnectivity tree: which minima are joined below which loss; see `understudy.landscape.tree`."""
        from understudy.landscape.tree import disconnectivity

        return disconnectivity(self)

    def barrier(self, first: int, second: int) -> float:
        """The least loss at which minima `first` and `second` are joined by the saddles found; inf if they are not."""
        from understudy.landscape.tree import lowest_barrier

        return lowest_barrier(self, first, second)

    def to_dict(self) -> dict[str, Any]:
        """The graph in JSON types."""
        c = self.completeness
        return {
            "task": dict(self.about),
            "points": [p.summary() for p in self.points],
            "connections": [
                {"saddle": x.saddle, "ends": list(x.ends), "certified": x.certified, "words": list(x.words)}
                for x in self.connections
            ],
            "completeness": {
                **{k: getattr(c, k) for k in ("starts", "converged", "classes", "once", "twice", "estimate")},
                **{k: getattr(c, k) for k in ("euler", "expected", "balanced", "reason")},
                "endings": dict(c.endings),
            },
            "notes": list(self.notes),
        }

    def to_dataset(self) -> xr.Dataset:
        """The graph as a dataset, with the parameters of every point."""
        from understudy.landscape.graph_file import to_dataset

        return to_dataset(self)

    def save(self, path: str | Path) -> Path:
        """Write the graph to one file, which `understudy.open` reads."""
        from understudy.landscape.graph_file import KIND
        from understudy.store import write_result

        return write_result(path, self.configuration or {"kind": KIND}, self.to_dataset())


def euler_count(points: Sequence[CriticalPoint]) -> tuple[int | None, str]:
    """Σ (-1)^index × orbit, or None and why the points have no such count."""
    bad = [p.number for p in points if not p.isolated]
    if bad:
        return None, f"{len(bad)} of the points are not isolated or degenerate, so the loss is not a Morse function"
    if any(p.orbit is None for p in points):
        return None, "not every orbit is known"
    if any(p.kind == "undecided" for p in points):
        return None, "some points are undecided"
    return int(np.sum([(-1) ** p.index * (p.orbit or 0) for p in points], dtype=int)), ""
