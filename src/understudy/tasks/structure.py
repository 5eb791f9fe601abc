"""The structure of a student: what each neuron became, and one label for the whole."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from understudy.activations import Activation

Role = Literal["copy", "average", "perturbed copy", "near average", "duplicate", "dead", "other"]

EXACT = 1e-6
"""Relative distance up to which a neuron is a copy or an average. Polished points are off by about 1e-14 / least
eigenvalue, perturbed ones by 1e-2 or more."""


@dataclass(frozen=True)
class Neuron:
    """One student neuron: its `role`, the `teachers` that it represents, and its `sign` relative to them (±1; odd σ).

    `distance` measures how far it is from being exactly that. A duplicate names the student that it repeats. `bias` is
    its bias, if it has one.
    """

    role: Role
    teachers: tuple[int, ...]
    sign: int
    distance: float
    partner: int | None = None
    bias: float | None = None


class Setting(NamedTuple):
    """The setting in which the theory of copies and averages applies.

    The k teachers are orthonormal with outgoing weights 1, inputs are isotropic, outgoing weights are trained, and
    students and teachers have the same activation.
    """

    activation: Activation
    teachers: int


@dataclass(frozen=True)
class Structure:
    """The structure of a point.

    - `label`: of the whole, empty if no structure is known; `neurons`: one entry per neuron.
    - `distance`: the largest distance of a neuron from its description in the label.
    - `partition`: group sizes in ascending order, if every neuron is an exact copy (1) or an average of ℓ teachers (ℓ)
      and no two share a teacher; None otherwise. Duplicates and dead neurons do not count.
    - `setting`: the activation and the number of teachers, if `theory.copy_average` applies; None otherwise.
    - `predicted_loss`: the loss that theory predicts for this partition, if there is a theory. `fit` fills it in.
    """

    label: str
    neurons: tuple[Neuron, ...]
    distance: float
    partition: tuple[int, ...] | None = None
    setting: Setting | None = None
    predicted_loss: float | None = None

    def with_biases(self, biases: np.ndarray) -> "Structure":
        """The same, with the bias of each neuron."""
        known = zip(self.neurons, biases, strict=True)
        return replace(self, neurons=tuple(replace(neuron, bias=float(bias)) for neuron, bias in known))


class Pair(NamedTuple):
    """A student and the teacher it learns from, as plain arrays.

    - `w` (n, d), `a` (n, m): incoming and outgoing weights of the students; `v` (k, d), `b` (k, m): of the teachers.
      Inputs are white: with a covariance Σ, w and v are multiplied by Σ^½.
    - `activation`: that of the students.
    """

    w: np.ndarray
    a: np.ndarray
    v: np.ndarray
    b: np.ndarray
    activation: Activation


def read_structure(pair: Pair, setting: Setting | None = None) -> Structure:
    """Find out which teachers a student copies and which it averages.

    A neuron is a *copy* of teacher j if w_i = ±v_j and a_i = ±b_j (for homogeneous activations: the same up to
    rescaling). It is an *average* of a group of ℓ ≥ 2 teachers if w_i is along Σ_{j in group} ±b_j v_j. Both hold to a
    relative 1e-6. There are two near misses. A *perturbed copy* has more than half of its squared length along one
    teacher (u_ij² > ½). A *near average* has no such teacher, but lies mostly (u² summed > ½) in the span of two or
    more teachers that all have the same sign of b_j u_ij. The result does not depend on the numbering of students and
    teachers.
    """
    w, a, v, b, _ = pair
    neurons: list[Neuron] = []
    strength = np.linalg.norm(w, axis=1) * np.linalg.norm(a, axis=1)
    for i in range(len(w)):
        if strength[i] <= EXACT * max(strength.max(), np.abs(v).max() * np.abs(b).max()):
            neurons.append(Neuron("dead", (), 1, float(strength[i])))
            continue
        partner = _duplicate_of(pair, i, [j for j, n in enumerate(neurons) if n.role not in ("dead", "duplicate")])
        if partner is not None:
            base = neurons[partner]
            neurons.append(Neuron("duplicate", base.teachers, base.sign, base.distance, partner))
            continue
        group = [i] + [j for j in range(i + 1, len(w)) if _duplicate_of(pair, j, [i]) is not None]
        neurons.append(_read(pair, w[i], _joint_outgoing(pair, group)))
    label, distance = _label(neurons)
    return Structure(label, tuple(neurons), distance, _partition(neurons), setting)


def _joint_outgoing(pair: Pair, group: list[int]) -> np.ndarray:
    """Outgoing weight of a neuron together with its duplicates, in units of the first one's incoming vector."""
    w, a, degree = pair.w, pair.a, pair.activation.homogeneity
    total = np.zeros(a.shape[1])
    for j in group:
        sign = np.sign(w[j] @ w[group[0]]) if pair.activation.parity == "odd" else 1.0
        ratio = np.linalg.norm(w[j]) / np.linalg.norm(w[group[0]])
        total = total + sign * a[j] * (ratio**degree if degree is not None else 1.0)
    return total


def _duplicate_of(pair: Pair, i: int, earlier: list[int]) -> int | None:
    for j in earlier:
        x, y = pair.w[i], pair.w[j]
        if pair.activation.homogeneity is not None:
            x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
        gap = np.linalg.norm(x - y)
        if pair.activation.parity is not None:
            gap = min(gap, np.linalg.norm(x + y))
        if gap <= EXACT * np.linalg.norm(y):
            return j
    return None


def _read(pair: Pair, w: np.ndarray, a: np.ndarray) -> Neuron:
    """The role of a neuron with incoming vector w and joint outgoing weights a."""
    v, b, activation = pair.v, pair.b, pair.activation
    lengths = np.linalg.norm(v, axis=1)
    norm = np.linalg.norm(w)
    u = v @ w / (np.where(lengths > 0, lengths, 1.0) * norm)
    best = int(np.argmax(np.abs(u)))
    sign = int(np.sign(u[best])) if activation.parity is not None else 1
    outgoing_sign = sign if activation.parity == "odd" else 1
    degree = activation.homogeneity
    if degree is not None:
        direction = float(np.linalg.norm(w / norm - sign * v[best] / lengths[best]))
        strength = b[best] * lengths[best] ** degree
        copy = max(direction, _relative(a * norm**degree - outgoing_sign * strength, strength))
    else:
        copy = max(
            _relative(w - sign * v[best], v[best]),
            _relative(a - outgoing_sign * b[best], b[best]),
        )
    if copy <= EXACT:
        return Neuron("copy", (best,), sign, float(copy))
    # Coefficients of w in the teachers: an average has equal ones on its group and zero elsewhere.
    basis = (b[:, :1] * v).T if b.shape[1] == 1 else v.T
    coefficients, *_ = np.linalg.lstsq(basis, w, rcond=None)
    size = np.abs(coefficients).max()
    if size == 0:  # no teacher does anything, or none in this direction
        return Neuron("other", (), 1, 1.0)
    group = tuple(int(j) for j in np.flatnonzero(np.abs(coefficients) > 0.5 * size))
    sign = 1 if coefficients[list(group)].sum() >= 0 else -1  # that of the majority, by weight
    ideal = np.zeros(len(v))
    ideal[list(group)] = sign * np.mean(np.abs(coefficients[list(group)]))
    average = float(np.linalg.norm(w - basis @ ideal) / norm)
    if len(group) > 1 and average <= EXACT:
        return Neuron("average", group, sign, average)
    if u[best] ** 2 > 0.5:
        return Neuron("perturbed copy", (best,), int(np.sign(u[best])), float(copy))
    main = [j for j in range(len(v)) if sign * coefficients[j] > 0.5 * size]
    if len(main) > 1 and np.sum(u[main] ** 2) > 0.5:
        return Neuron("near average", tuple(main), sign, average)
    return Neuron("other", group, sign, average)


def _relative(gap: np.ndarray, to: np.ndarray) -> float:
    """The norm of a gap as a share of that of `to`; infinite if this is zero."""
    size = float(np.linalg.norm(to))
    return float(np.linalg.norm(gap)) / size if size > 0 else float("inf")


def _partition(neurons: list[Neuron]) -> tuple[int, ...] | None:
    """Group sizes, ascending, of exact copies and averages of disjoint groups; None for anything else."""
    active = [n for n in neurons if n.role not in ("dead", "duplicate")]
    used = [j for n in active for j in n.teachers]
    if not active or len(used) != len(set(used)) or any(n.role not in ("copy", "average") for n in active):
        return None
    return tuple(sorted(len(n.teachers) for n in active))


def _label(neurons: list[Neuron]) -> tuple[str, float]:
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
