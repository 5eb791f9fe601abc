"""Warm starts for a smaller student, made from its teacher."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from understudy.tasks.imitation import Imitation
from understudy.tasks.task import Task
from understudy.theory.copy_average import copy_average
from understudy.theory.one_neuron import NoCriticalPointError

LOW_COMPRESSION = 0.75
"""γ3 of Simsek et al. 2023: copies lead to the better minimum if students / teachers is larger than this."""


def warm_start(
    task: Task, kind: Literal["auto", "copy-average", "copy"] = "auto", *, teacher: Any = None, layer: int = 0
) -> Any:
    """A student made from the neurons of a wider network, as a start of the flow.

    **Arguments**

    - `task`: a task with fewer students (n) than the wider network has neurons (k).
    - `kind`: `"copy"`: copies of the n neurons whose absence would cost most; `"copy-average"`: n-1 copies, and one
      neuron that averages the rest; `"auto"`: `"copy"` if n > 0.75 k, otherwise `"copy-average"`.
    - `teacher`: the wider network. `Population` and `Sphere` tasks have their own. An `Empirical` task takes a
      `TwoLayer`, `Deep` or `Teacher` that differs from its network only in one hidden layer; a `Regularised` task takes
      such weight matrices.
    - `layer`: that hidden layer; 0 is the first.

    For the unit-orthonormal teacher and erf, `"copy-average"` is the exact (n-1)-copy-1-average point and `"copy"` the
    n-copy point (Simsek et al. 2023, Section 6, advise copies for n > γ3 k and the average below). For any other
    teacher, outgoing weights, inputs or layer this is a heuristic:

    - The averaged neurons are chosen greedily. The search begins with the pair that one neuron represents best and
      adds the neuron that costs least. Each group is judged by the squared error of its best single neuron along
      Σ_j b_j v_j.
    - The norm of the averaging neuron is searched for (on the sphere it is 1). All outgoing weights are then solved for
      exactly (a least-squares problem), which also accounts for interactions between groups. So is the offset, or the
      bias of the next layer, if the task trains it. Fixed outgoing weights stay as they are.

    On data the squared error is that of the inputs of the next layer, whatever the cost is, and a penalty is not
    considered.

    >>> from understudy import Population, Teacher
    >>> start = warm_start(Population(Teacher.orthonormal(5), width=3), "copy-average")
    >>> start.outgoing.round(6).tolist()
    [1.0, 1.0, 3.0]
    """
    if kind not in ("auto", "copy-average", "copy"):
        raise ValueError(f"kind is 'auto', 'copy-average' or 'copy'; received {kind!r}.")
    aim = task.imitation(teacher, layer)
    k, n = len(aim.rows), aim.students
    if n >= k:
        raise ValueError(
            f"A warm start makes a smaller student from a wider network; received {n} students and {k} neurons. Split "
            "neurons to make a wider student."
        )
    if kind == "auto":
        kind = "copy" if n > LOW_COMPRESSION * k else "copy-average"
    if aim.setting is not None:
        exact = (1,) * n if kind == "copy" else (*(1,) * (n - 1), k - n + 1)
        try:
            point = copy_average(aim.setting.activation, exact, teachers=k)
            return aim.build(np.asarray(point.incoming) @ aim.rows, np.asarray(point.outgoing)[:, None])
        except NoCriticalPointError:
            pass  # the average of such an activation has no best norm, so the heuristic bounds it
    view = _View(aim)
    if kind == "copy":
        return view.solve(aim.rows[view.costliest()])
    group = view.group(k - n + 1)
    kept = [j for j in range(k) if j not in group]
    average = view.best_average(group, passes=3)[1]
    return view.solve(np.concatenate([aim.rows[kept], average[None]]))


class _View:
    """The errors of groups of neurons that are left out or averaged."""

    def __init__(self, aim: Imitation):
        self.aim = aim
        self.gram = (aim.outgoing @ aim.outgoing.T) * aim.overlaps
        self.lengths = aim.lengths(aim.rows)

    def costliest(self) -> list[int]:
        """The n neurons whose absence costs most."""
        k, n = len(self.aim.rows), self.aim.students
        if self.aim.fixed is None:
            missed = [self.residual([j for j in range(k) if j != i]) for i in range(k)]
        else:  # the others cannot make up for it
            missed = np.diagonal(self.gram).tolist()
        return sorted(np.argsort(missed, kind="stable")[k - n :].tolist())

    def residual(self, kept: list[int]) -> float:
        """Squared error of the best combination of these neurons' own functions."""
        b, overlaps = self.aim.outgoing, self.aim.overlaps
        cross = overlaps[kept] @ b
        best = np.linalg.lstsq(overlaps[np.ix_(kept, kept)], cross, rcond=1e-12)[0]
        return float(self.gram.sum() - np.sum(cross * best))

    def best_average(self, group: list[int], passes: int = 1) -> tuple[float, np.ndarray]:
        """Squared error of the best single neuron along Σ b_j v_j for this group alone, and its row.

        Neurons outside the group have weight 0 instead of being left out, so that all groups share one compiled shape.
        """
        aim = self.aim
        weights = np.zeros_like(aim.outgoing)
        weights[group] = aim.outgoing[group]
        direction = _strengths(weights) @ aim.rows
        size = float(aim.lengths(direction[None])[0])
        total = float(self.gram[np.ix_(group, group)].sum())
        if size <= 1e-12 * float(self.lengths.max()):  # they cancel: one of them is as good as any other direction
            direction, size = aim.rows[group[0]], float(self.lengths[group[0]])
        unit = direction / size * float(np.mean(self.lengths[group]))
        norms, found = aim.norms, (total, unit)
        for turn in range(passes):
            rows = norms[:, None] * unit[None, :]
            cross = aim.towards(rows) @ weights
            losses = total + self._gain(cross, aim.squares(rows))
            best = int(np.argmin(losses))
            found = float(losses[best]), rows[best]
            if turn + 1 < passes:
                norms = np.geomspace(norms[max(best - 1, 0)], norms[min(best + 1, len(norms) - 1)], len(norms))
        return found

    def _gain(self, cross: np.ndarray, own: np.ndarray) -> np.ndarray:
        """How much a neuron changes the squared error, with the best or with its fixed outgoing weights."""
        if self.aim.fixed is None:
            return -np.sum(cross**2, axis=1) / np.maximum(own, 1e-300)
        a = self.aim.fixed[-1]
        return (a @ a) * own - 2 * cross @ a

    def group(self, size: int) -> list[int]:
        """Neurons to be averaged, chosen greedily."""
        k = len(self.aim.rows)
        pairs = [[i, j] for i in range(k) for j in range(i)]
        # One neuron represents two others better if they overlap more, relative to their strength.
        overlap = [self.gram[i, j] - 0.5 * (self.gram[i, i] + self.gram[j, j]) for i, j in pairs]
        first = sorted(range(len(pairs)), key=lambda p: -overlap[p])[: 4 * k]
        chosen = min((pairs[p] for p in first), key=lambda pair: self.best_average(pair)[0])
        while len(chosen) < size:
            rest = [j for j in range(k) if j not in chosen]
            base = {j: self.best_average([*chosen, j])[0] for j in rest}
            chosen = [*chosen, min(rest, key=lambda j: base[j])]
        return sorted(chosen)

    def solve(self, rows: np.ndarray) -> Any:
        """The student with these rows and the best (or its fixed) outgoing weights."""
        aim = self.aim
        if aim.fixed is not None:
            return aim.build(rows, aim.fixed)
        outgoing = np.linalg.lstsq(aim.between(rows), aim.target(rows), rcond=1e-12)[0]
        return aim.build(rows, outgoing)


def _strengths(weights: np.ndarray) -> np.ndarray:
    """Outgoing weights (k, m) as one number per neuron: the components along their leading direction."""
    if weights.shape[1] == 1:
        return weights[:, 0]
    direction = np.linalg.svd(weights, full_matrices=False)[2][0]
    strengths = weights @ direction
    return strengths * (np.sign(strengths.sum()) or 1.0)
