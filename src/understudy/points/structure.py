"""What each student neuron became, and one label for the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from understudy.networks import TwoLayer
from understudy.tasks.population import Population

Role = Literal["copy", "average", "perturbed copy", "near average", "duplicate", "dead", "other"]

EXACT = 1e-6
"""Relative distance up to which a neuron is a copy or an average, and not near one: polished points are off by
about 1e-14 /
least eigenvalue, perturbed ones by 1e-2 or more."""


@dataclass(frozen=True)
class Neuron:
    """One student neuron: its `role`, the `teachers` it stands for, its `sign` relative to them (±1; odd activations),
    the `distance` from being exactly that, and for a duplicate the student it repeats."""

    role: Role
    teachers: tuple[int, ...]
    sign: int
    distance: float
    partner: int | None = None


@dataclass(frozen=True)
class Structure:
    """`label` of the whole, `neurons` one by one, and the largest `distance` from what the label says."""

    label: str
    neurons: tuple[Neuron, ...]
    distance: float


def structure(task: Population, parameters: TwoLayer) -> Structure:
    """Read off a student what it copies and what it averages.

    A neuron is a *copy* of teacher j if w_i = ±v_j and a_i = ±b_j (for homogeneous activations: the same up to
    rescaling), an *average* of a group of ℓ ≥ 2 teachers if w_i is along Σ_{j in group} ±b_j v_j, both to a relative
    1e-6. Near misses: a *perturbed copy* has more than half of its squared length along one teacher (u_ij² > ½), a
    *near average* has no such teacher but lies mostly (u² summed > ½) in the span of two or more that all have the
    same sign of b_j u_ij.
    """
    task, parameters, _ = task.reduce(parameters)
    w = np.asarray(parameters.incoming, float)
    a = np.asarray(parameters.outgoing, float).reshape(len(w), -1)
    v = np.asarray(task.teacher.incoming, float)
    b = np.asarray(task.teacher.outgoing, float).reshape(len(v), -1)
    if task.root is not None:
        root = np.asarray(task.root)
        w, v = w @ root, v @ root
    neurons: list[Neuron] = []
    strength = np.linalg.norm(w, axis=1) * np.linalg.norm(a, axis=1)
    for i in range(len(w)):
        if strength[i] <= EXACT * max(strength.max(), np.abs(v).max() * np.abs(b).max()):
            neurons.append(Neuron("dead", (), 1, float(strength[i])))
            continue
        partner = _duplicate_of(task, w, i, [j for j, n in enumerate(neurons) if n.role not in ("dead", "duplicate")])
        if partner is not None:
            base = neurons[partner]
            neurons.append(Neuron("duplicate", base.teachers, base.sign, base.distance, partner))
            continue
        group = [i] + [j for j in range(i + 1, len(w)) if _duplicate_of(task, w, j, [i]) is not None]
        neurons.append(_read(task, w[i], _joint_outgoing(task, w, a, group), v, b))
    label, distance = _label(neurons, task)
    return Structure(label, tuple(neurons), distance)


def _joint_outgoing(task: Population, w: np.ndarray, a: np.ndarray, group: list[int]) -> np.ndarray:
    """Outgoing weight of a neuron together with its duplicates, in units of the first one's incoming vector."""
    degree = task.activation.homogeneity
    total = np.zeros(a.shape[1])
    for j in group:
        sign = np.sign(w[j] @ w[group[0]]) if task.activation.parity == "odd" else 1.0
        ratio = np.linalg.norm(w[j]) / np.linalg.norm(w[group[0]])
        total = total + sign * a[j] * (ratio**degree if degree is not None else 1.0)
    return total


def _duplicate_of(task: Population, w: np.ndarray, i: int, earlier: list[int]) -> int | None:
    for j in earlier:
        x, y = w[i], w[j]
        if task.activation.homogeneity is not None:
            x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
        gap = np.linalg.norm(x - y)
        if task.activation.parity is not None:
            gap = min(gap, np.linalg.norm(x + y))
        if gap <= EXACT * np.linalg.norm(y):
            return j
    return None


def _read(task: Population, w: np.ndarray, a: np.ndarray, v: np.ndarray, b: np.ndarray) -> Neuron:
    lengths = np.linalg.norm(v, axis=1)
    norm = np.linalg.norm(w)
    u = v @ w / (np.where(lengths > 0, lengths, 1.0) * norm)
    best = int(np.argmax(np.abs(u)))
    flips = task.activation.parity is not None
    sign = int(np.sign(u[best])) if flips else 1
    outgoing_sign = sign if task.activation.parity == "odd" else 1
    degree = task.activation.homogeneity
    if degree is not None:
        direction = np.linalg.norm(w / norm - sign * v[best] / lengths[best])
        size = np.linalg.norm(a * norm**degree - outgoing_sign * b[best] * lengths[best] ** degree)
        copy = max(direction, size / np.linalg.norm(b[best] * lengths[best] ** degree))
    else:
        copy = max(
            np.linalg.norm(w - sign * v[best]) / lengths[best],
            np.linalg.norm(a - outgoing_sign * b[best]) / np.linalg.norm(b[best]),
        )
    if copy <= EXACT:
        return Neuron("copy", (best,), sign, float(copy))
    # Coefficients of w in the teachers: an average has equal ones on its group and zero elsewhere.
    coefficients, *_ = np.linalg.lstsq((b[:, :1] * v).T if b.shape[1] == 1 else v.T, w, rcond=None)
    size = np.abs(coefficients).max()
    group = tuple(int(j) for j in np.flatnonzero(np.abs(coefficients) > 0.5 * size))
    sign = int(np.sign(coefficients[group[0]]))
    ideal = np.zeros(len(v))
    ideal[list(group)] = sign * np.mean(np.abs(coefficients[list(group)]))
    basis = (b[:, :1] * v).T if b.shape[1] == 1 else v.T
    average = float(np.linalg.norm(w - basis @ ideal) / norm)
    if len(group) > 1 and average <= EXACT:
        return Neuron("average", group, sign, average)
    if u[best] ** 2 > 0.5:
        return Neuron("perturbed copy", (best,), int(np.sign(u[best])), float(copy))
    main = [j for j in range(len(v)) if sign * coefficients[j] > 0.5 * size]
    if len(main) > 1 and np.sum(u[main] ** 2) > 0.5:
        return Neuron("near average", tuple(main), sign, average)
    return Neuron("other", group, sign, average)


def _label(neurons: list[Neuron], task: Population) -> tuple[str, float]:
    """`3-copy-1-average`, `(1,2,5)-copy-average`, `perturbed-8-copy`, … and the distance from it."""
    active = [n for n in neurons if n.role not in ("dead", "duplicate")]
    distance = max((n.distance for n in active), default=0.0)
    roles = {n.role for n in active}
    used = [j for n in active for j in n.teachers]
    distinct = len(used) == len(set(used))
    extras = [f"{count}-{role}" for role in ("duplicate", "dead") if (count := sum(n.role == role for n in neurons))]
    copies = sum(n.role in ("copy", "perturbed copy") for n in active)
    averages = sum(n.role in ("average", "near average") for n in active)
    if not active:
        return "-".join(extras), distance
    if "other" in roles or not distinct:
        return "-".join(["other", *extras]), distance
    if roles <= {"copy", "average"} and averages > 1:
        sizes = ",".join(str(s) for s in sorted(len(n.teachers) for n in active))
        return "-".join([f"({sizes})", "copy-average", *extras]), distance
    parts = ([f"{copies}-copy"] if copies else []) + ([f"{averages}-average"] if averages else [])
    prefix = [] if roles <= {"copy", "average"} else ["perturbed"]
    return "-".join([*prefix, *parts, *extras]), distance
