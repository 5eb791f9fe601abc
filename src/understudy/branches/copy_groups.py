r"""Networks of erf neurons with a symmetry, in few coordinates, where the numbers of neurons are real numbers.

If equal neurons are counted instead of listed, the loss of a symmetric network depends on the counts as on any real
number. So a critical point can be followed as the number k of teachers moves between whole numbers.

There are unit-orthonormal teachers in groups. Each student belongs to one group of teachers and to one teacher of it:
group g has s_g students and s_g teachers. Further groups of teachers have no students. All students of a group are
alike up to permutation: a student of group g has the component `own` along its own teacher, `peer` along each other
teacher of its group, and `cross[h]` along each teacher of another group h, and the outgoing weight `outgoing`."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from understudy.networks import TwoLayer
from understudy.tasks.task import Task


class CopyGroups(Task):
    r"""L = E(f - f*)² of students and unit-orthonormal teachers in groups of real sizes, for erf.

    **Arguments**

    - `students`: sizes s_g ≥ 1 of the groups that have a student for each teacher. A size of exactly 1 at the time the
      task is made stands for one neuron, which has no peers.
    - `teachers`: sizes of the groups of teachers without students, positive.
    - `weights`: outgoing weights of these groups of teachers. Default: 1. Weight 0 stands for input directions that no
      teacher uses.

    The flat vector has, for each group of students, `own`, `peer` (not for one neuron), `cross` (one per other group,
    in order, groups without students last) and `outgoing`. `network` lists all neurons if the sizes are whole.

    >>> task = CopyGroups([3], [2])
    >>> task.size, task.copies().tolist()  # own, peer, cross, outgoing
    (4, [1.0, 0.0, 0.0, 1.0])
    """

    sizes: Float[Array, " groups"]
    targets: Float[Array, " groups"]
    single: tuple[bool, ...] = eqx.field(static=True)

    def __init__(self, students: Sequence[Any], teachers: Sequence[Any] = (), weights: Sequence[float] | None = None):
        if not len(students):
            raise ValueError("There must be at least one group of students; received none.")
        if weights is not None and len(weights) != len(teachers):
            raise ValueError(f"Each of the {len(teachers)} groups of teachers needs a weight; received {weights!r}.")
        self.single = tuple(not isinstance(s, jax.core.Tracer) and bool(s == 1) for s in students)
        listed = [*students, *teachers]
        for size in listed:
            if not isinstance(size, jax.core.Tracer) and not (np.isfinite(size) and size > 0):
                raise ValueError(f"Groups have positive sizes; received students={students!r}, teachers={teachers!r}.")
        self.sizes = jnp.stack([jnp.asarray(size, float) for size in listed])
        extra = np.ones(len(teachers)) if weights is None else np.asarray(weights, float)
        self.targets = jnp.asarray(np.concatenate([np.ones(len(students)), extra]))

    @property
    def groups(self) -> int:
        """Number of groups of students."""
        return len(self.single)

    @property
    def size(self) -> int:
        return sum(1 + (not one) + len(self.sizes) - 1 + 1 for one in self.single)

    def flatten(self, parameters: ArrayLike) -> Float[Array, "*batch P"]:
        vector = jnp.asarray(parameters, float)
        if vector.shape[-1] != self.size:
            raise ValueError(f"These groups have {self.size} parameters; received shape {vector.shape}.")
        return vector

    def unflatten(self, vector: Float[Array, "*batch P"]) -> Float[Array, "*batch P"]:
        return vector

    def copies(self) -> np.ndarray:
        """The point at which every student copies its own teacher. It is critical if there are no other teachers."""
        rows = []
        for one in self.single:
            row = np.zeros(1 + (not one) + len(self.sizes))
            row[0] = row[-1] = 1.0
            rows.append(row)
        return np.concatenate(rows)

    def parts(self, vector: Array) -> tuple[Array, Array, Array, Array]:
        """own (G,), peer (G,), cross (G, groups; the diagonal is zero) and outgoing (G,)."""
        own, peer, cross, outgoing, begin = [], [], [], [], 0
        for g, one in enumerate(self.single):
            length = 1 + (not one) + len(self.sizes)
            row = vector[begin : begin + length]
            begin += length
            own.append(row[0])
            peer.append(jnp.zeros(()) if one else row[1])
            others = row[1 + (not one) : -1]
            cross.append(jnp.concatenate([others[:g], jnp.zeros(1), others[g:]]))
            outgoing.append(row[-1])
        return jnp.stack(own), jnp.stack(peer), jnp.stack(cross), jnp.stack(outgoing)

    @property
    def multiplicities(self) -> Float[Array, " P"]:
        """How many entries of the network each parameter stands for."""
        rows = []
        for g, one in enumerate(self.single):
            s = self.sizes[g]
            others = jnp.concatenate([self.sizes[:g], self.sizes[g + 1 :]])
            rows += [s[None], *([] if one else [(s * (s - 1))[None]]), s * others, s[None]]
        return jnp.concatenate(rows)

    def value(self, vector: Float[Array, " P"]) -> Float[Array, ""]:
        own, peer, cross, a = self.parts(vector)
        count, s = self.groups, self.sizes[: self.groups]
        # Sums over the teachers of a group: x for the members' peers, and what a member of another group sees.
        along = cross**2 @ self.sizes
        norms = own**2 + (s - 1) * peer**2 + along
        inside = 2 * own * peer + (s - 2) * peer**2 + along
        seen = (own + (s - 1) * peer)[:, None] * cross[:, :count].T  # w_i·(teachers of g), student j of group h ≠ g
        between = seen + seen.T + (cross * self.sizes[None]) @ cross.T
        own_terms = jnp.sum(s * a**2 * (_overlap(norms, norms, norms) + (s - 1) * _overlap(inside, norms, norms)))
        pairs = _overlap(jnp.where(jnp.eye(count, dtype=bool), 0.0, between), norms[:, None], norms[None, :])
        others = _overlap(cross, norms[:, None], 1.0) * (self.sizes * self.targets)[None]
        matched = _overlap(own, norms, 1.0) + (s - 1) * _overlap(peer, norms, 1.0) + jnp.sum(others, axis=1)
        weighted = s * a
        constant = jnp.sum(self.sizes * self.targets**2) * _overlap(1.0, 1.0, 1.0)
        return own_terms + weighted @ pairs @ weighted - 2 * weighted @ matched + constant

    @property
    def lower_bound(self) -> float:
        """Zero: the loss is a mean square."""
        return 0.0

    def refined(self, vector: Float[Array, " P"] | np.ndarray) -> 'tuple[CopyGroups, Float[Array, " Q"]]':
        """The same point with neurons singled out, so that every kind of perturbation of the network is possible.

        From each group of students two neurons are singled out, from each other group of teachers one, and one input
        direction is added that no teacher uses. Perturbations of all n students by any vectors form representations of
        the permutations of each group. Each irreducible one that occurs has a vector that is fixed by the permutations
        of the neurons that are left (its Kostka number is positive). So the refined Hessian has every eigenvalue of the
        whole network, though not as often.
        """
        singled: list[int] = []  # the old group of each new group
        sizes: list[float] = []
        for g, size in enumerate(np.asarray(self.sizes).tolist()):
            parts = _singled_out(size, 2 if g < self.groups else 1)
            sizes += parts
            singled += [g] * len(parts)
        students = sum(g < self.groups for g in singled)
        weights = [float(self.targets[g]) for g in singled[students:]]
        task = CopyGroups(sizes[:students], [*sizes[students:], 1.0], [*weights, 0.0])
        own, peer, cross, outgoing = (np.asarray(part) for part in self.parts(jnp.asarray(vector)))
        rows = []
        for new, g in enumerate(singled[:students]):
            others = [peer[g] if h == g else cross[g, h] for i, h in enumerate(singled) if i != new]
            rows.append([own[g], *([] if task.single[new] else [peer[g]]), *others, 0.0, outgoing[g]])
        return task, jnp.asarray(np.concatenate(rows))

    def network_eigenvalues(self, vector: Float[Array, " P"] | np.ndarray) -> np.ndarray:
        """The different eigenvalues of the Hessian of the whole network at a critical point, ascending; see `refined`.

        Their number does not depend on the sizes. For sizes that are not whole they continue those of whole ones.
        """
        task, inner = self.refined(vector)
        scale = 1 / np.sqrt(np.asarray(task.multiplicities))
        return np.linalg.eigvalsh(scale[:, None] * np.asarray(task.hessian(inner)) * scale)

    def network(self, vector: Float[Array, " P"] | np.ndarray) -> TwoLayer:
        """All students, neuron by neuron, for whole sizes; teachers are the coordinate vectors in the order of
        groups."""
        counts = np.round(np.asarray(self.sizes)).astype(int)
        if np.abs(np.asarray(self.sizes) - counts).max() > 1e-9:
            raise ValueError(f"A network needs whole group sizes; received {np.asarray(self.sizes).tolist()}.")
        own, peer, cross, a = (np.asarray(part) for part in self.parts(jnp.asarray(vector)))
        ends = np.concatenate([[0], np.cumsum(counts)])
        rows, outgoing = [], []
        for g in range(self.groups):
            for i in range(counts[g]):
                row = np.repeat(cross[g], counts)
                row[ends[g] : ends[g + 1]] = peer[g]
                row[ends[g] + i] = own[g]
                rows.append(row)
                outgoing.append(a[g])
        return TwoLayer(np.array(rows), np.array(outgoing))


def _singled_out(size: float, count: int) -> list[float]:
    """A size as ones and a rest: at most `count` ones, and a rest that is a size again."""
    if size <= 1:
        return [size]
    if count == 2 and size < 4 and size not in (2.0, 3.0):
        raise ValueError(
            f"Eigenvalues of the network need 1, 2, 3 or at least 4 students in a group; received {size:g}."
        )
    ones = min(count, int(np.ceil(size)) - 1)
    return [1.0] * ones + [size - ones]


def _overlap(q12: Any, q11: Any, q22: Any) -> Array:
    """E[σ(x)σ(y)] = (2/π) asin(q12/√((1 + q11)(1 + q22))) for erf; smooth, because the argument stays below 1."""
    return 2 / jnp.pi * jnp.arcsin(q12 / jnp.sqrt((1 + q11) * (1 + q22)))
