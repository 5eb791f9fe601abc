r"""Copy-average points: every student neuron is the best single neuron for its own group of teachers.

A partition (ℓ_1, …, ℓ_n) of the k unit-orthonormal teachers assigns a group of ℓ_i consecutive teachers to student i.
The student is the one-neuron optimum (r_i, a_i) for its group: a copy if ℓ_i = 1, an average if ℓ_i > 1 (Simsek et al.
2023, Eq. 11-12). With erf such a point is critical if and only if every teacher belongs to a group, Σ ℓ_i = k. A
teacher v without a group pulls student i along v with the force 2 a_i E[σ'(r_i z)] E[σ'(z)] ≠ 0 (see
`unmatched_force`).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from understudy import activations
from understudy.activations import Activation
from understudy.gaussian import hermite, interaction
from understudy.networks import TwoLayer
from understudy.tasks.structure import Structure
from understudy.theory.one_neuron import one_neuron


def copy_average(
    activation: str | Activation, partition: Sequence[int], teachers: int | None = None, dim: int | None = None
) -> TwoLayer:
    """The copy-average point of a partition, for the teachers e_1 … e_k.

    **Arguments**

    - `partition`: group sizes ℓ_1 … ℓ_n ≥ 1; groups are consecutive teachers.
    - `teachers`: k ≥ Σ ℓ_i. Default: the sum. Teachers beyond the sum belong to no group.
    - `dim`: input dimension ≥ k. Default: k.

    >>> point = copy_average("erf", partition=(1, 1, 3))
    >>> point.incoming.shape, point.outgoing.tolist()
    ((3, 5), [1.0, 1.0, 3.0])
    """
    sizes, k = check_partition(partition, teachers)
    width = k if dim is None else int(dim)
    if width < k:
        raise ValueError(f"{k} orthonormal teachers need dim ≥ {k}; received dim={dim}.")
    incoming, outgoing = np.zeros((len(sizes), width)), np.zeros(len(sizes))
    start = 0
    for i, size in enumerate(sizes):
        best = one_neuron(activation, size)
        incoming[i, start : start + size] = best.norm * best.correlation
        outgoing[i] = best.outgoing
        start += size
    return TwoLayer(jnp.asarray(incoming), jnp.asarray(outgoing))


def copy_average_loss(activation: str | Activation, partition: Sequence[int], teachers: int | None = None) -> float:
    """The exact loss of a copy-average point, for any activation.

    For odd activations neurons of different groups do not interact, and the loss is Σ_i L*(ℓ_i) + (k - Σ ℓ_i) E[σ(z)²]
    (Simsek et al. 2023, Eq. 17). Otherwise they interact through their means m(r) = E[σ(rz)]: with
    e_i = a_i m(r_i) - ℓ_i m(1) for each student and its group, and e = -m(1) for each teacher without a student, the
    loss grows by (Σ e)² - Σ e².

    >>> round(copy_average_loss("erf", (1, 1, 6)), 12) == round(one_neuron("erf", 6).loss, 12)
    True
    """
    sizes, k = check_partition(partition, teachers)
    left = k - sum(sizes)
    best = {size: one_neuron(activation, size) for size in set(sizes)}
    loss = sum(best[size].loss for size in sizes) + (left * _square(activation) if left else 0.0)
    if activations.get(activation).parity == "odd":
        return loss
    unit = _mean(activation, 1.0)
    excess = np.array(
        [best[size].outgoing * _mean(activation, best[size].norm) - size * unit for size in sizes] + left * [-unit]
    )
    return float(loss + np.sum(excess) ** 2 - np.sum(excess**2))


def predicted_loss(structure: Structure) -> float | None:
    """The loss that theory predicts for the partition of a point, or None if there is no theory.

    There is a theory for erf (Simsek et al. 2023, Eq. 17), if the groups cover every teacher.

    >>> from understudy import Population, Teacher
    >>> task = Population(Teacher.orthonormal(8), width=3)
    >>> predicted_loss(task.structure(copy_average("erf", (1, 1, 6)))) == copy_average_loss("erf", (1, 1, 6))
    True
    """
    setting, partition = structure.setting, structure.partition
    if setting is None or partition is None or setting.activation.name != "erf" or sum(partition) != setting.teachers:
        return None
    return copy_average_loss(setting.activation, partition)


def unmatched_force(activation: str | Activation, partition: Sequence[int], teachers: int) -> float:
    """Norm of the gradient at an incomplete copy-average point, for odd activations.

    Each of the k - Σ ℓ teachers without a group acts on each student: ‖∇L‖² = (k - Σ ℓ) Σ_i (2 a_i E[σ'(r_i z)]
    E[σ'(z)])². With erf all other forces vanish, so this is the whole gradient.
    """
    sizes, k = check_partition(partition, teachers)
    pulls = []
    for size in sizes:
        best = one_neuron(activation, size)
        pulls.append(2 * best.outgoing * _mean_slope(activation, best.norm) * _mean_slope(activation, 1.0))
    return math.sqrt(k - sum(sizes)) * float(np.linalg.norm(pulls))


@dataclass(frozen=True)
class Count:
    """How many copy-average points share the group sizes: `groupings` × `orders` × `signs` = `total`.

    - `groupings`: ways to give the students, in a fixed order of sizes, disjoint groups of teachers of these sizes.
    - `orders`: distinct orders of the sizes among the students, n!/Π c_ℓ!.
    - `signs`: 2^n for odd activations, because (w, a) and (-w, -a) are the same neuron; otherwise 1.
    """

    groupings: int
    orders: int
    signs: int

    @property
    def total(self) -> int:
        """Number of distinct parameter vectors."""
        return self.groupings * self.orders * self.signs


def count(partition: Sequence[int], teachers: int | None = None, *, odd: bool = True) -> Count:
    """The number of copy-average points with these group sizes in parameter space.

    groupings = k!/(ℓ_1! … ℓ_n! (k - Σℓ)!), the product of binomials C(k - ℓ_1 - … - ℓ_{i-1}, ℓ_i) (Simsek et al. 2023,
    Eq. 67, whose last binomial as printed has ℓ_n in the upper entry too and vanishes for every complete partition),
    orders = n!/(c_1! … c_k!), their Eq. 68.

    >>> count((1, 2), teachers=3).total
    24
    """
    sizes, k = check_partition(partition, teachers)
    groupings = math.factorial(k)
    for size in (*sizes, k - sum(sizes)):
        groupings //= math.factorial(size)
    orders = math.factorial(len(sizes))
    for size in set(sizes):
        orders //= math.factorial(sizes.count(size))
    return Count(groupings, orders, 2 ** len(sizes) if odd else 1)


def partitions(total: int, parts: int, least: int = 1) -> Iterator[tuple[int, ...]]:
    """The partitions of `total` into `parts` parts of at least `least`, each in ascending order.

    >>> list(partitions(6, 3))
    [(1, 1, 4), (1, 2, 3), (2, 2, 2)]
    """
    if parts == 0:
        if total == 0:
            yield ()
    elif parts == 1:
        if total >= least:
            yield (total,)
    else:
        for first in range(least, total // parts + 1):
            for rest in partitions(total - first, parts - 1, first):
                yield (first, *rest)


@dataclass(frozen=True)
class Ranking:
    """Copy-average points of n students and k teachers, `partitions[0]` with the least of the `losses`."""

    partitions: tuple[tuple[int, ...], ...]
    losses: np.ndarray

    @property
    def best(self) -> tuple[int, ...]:
        """The partition with the least loss."""
        return self.partitions[0]


def rank(activation: str | Activation, students: int, teachers: int, *, incomplete: bool = False) -> Ranking:
    """All partitions of the teachers among the students, sorted by loss (brute force).

    `incomplete` includes those with Σ ℓ < k (which are not critical, see `unmatched_force`).

    >>> rank("erf", 2, 6).partitions
    ((1, 5), (2, 4), (3, 3))
    """
    if students > teachers:
        raise ValueError(f"{students} students cannot have disjoint groups of {teachers} teachers.")
    totals = range(students, teachers + 1) if incomplete else (teachers,)
    found = [sizes for total in totals for sizes in partitions(total, students)]
    if activations.get(activation).parity == "odd":
        best = np.array([0.0] + [one_neuron(activation, size).loss for size in range(1, teachers + 1)])
        square = _square(activation)
        losses = np.array([best[list(sizes)].sum() + (teachers - sum(sizes)) * square for sizes in found])
    else:
        losses = np.array([copy_average_loss(activation, sizes, teachers) for sizes in found])
    order = np.argsort(losses, kind="stable")
    return Ranking(tuple(found[i] for i in order), losses[order])


def check_partition(partition: Sequence[int], teachers: int | None) -> tuple[list[int], int]:
    """Group sizes and the number of teachers, checked; without `teachers`, the sum of the sizes."""
    sizes = [int(size) for size in partition]
    if not sizes or any(size != given or size < 1 for size, given in zip(sizes, partition, strict=True)):
        raise ValueError(f"A partition is a list of group sizes ≥ 1; received {tuple(partition)!r}.")
    k = sum(sizes) if teachers is None else int(teachers)
    if sum(sizes) > k:
        raise ValueError(f"The groups {tuple(sizes)} need {sum(sizes)} teachers; received teachers={teachers}.")
    return sizes, k


def _mean(activation: str | Activation, norm: float) -> float:
    """E[σ(r z)]."""
    return float(_moments(activations.get(activation), norm, 0))


def _mean_slope(activation: str | Activation, norm: float) -> float:
    """E[σ'(r z)]."""
    return float(_moments(activations.get(activation), norm, 1))


def _square(activation: str | Activation) -> float:
    """E[σ(z)²]."""
    return float(interaction(activation, 1.0, 1.0, 1.0))


def _moments(activation: Activation, norm: float, order: int) -> float:
    """E[σ^(order)(r z)] by the trapezoid rule, split at zero, the only possible kink; spectrally accurate."""
    if activation.smoothness == 0:
        z, weight = np.polynomial.legendre.leggauss(200)
        z = 0.5 * (z + 1) * 12.0
        weight = 6.0 * weight
        z, weight = np.concatenate([-z, z]), np.concatenate([weight, weight])
    else:
        z = np.linspace(-14.0, 14.0, 4001)
        weight = np.full(z.shape, 28.0 / 4000)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    values = hermite.derivatives(activation, norm * z, order + 1)[order]
    return float(np.sum(weight * density * values))
