"""Order parameters of a student: overlaps with itself and with the teacher, and outgoing weights."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from understudy.networks import TwoLayer
from understudy.tasks.order_problem import OrderProblem

_TOLERANCE = 1e-9
"""How negative an eigenvalue of a Gram matrix of overlaps may be, relative to the largest, before it is refused."""


class Overlaps(eqx.Module):
    """Q_ij = w_i·w_j, R_ij = w_i·v_j and outgoing weights a_i: all that the equations of one-pass SGD carry.

    **Arguments**

    - `student`: Q, shape (n, n), symmetric; `teacher`: R, shape (n, k); `outgoing`: a, shape (n,) or (n, m).

    >>> Overlaps([[0.25]], [[0.1, 0.0]], [1.0]).student.shape
    (1, 1)
    """

    student: Float[Array, "n n"]
    teacher: Float[Array, "n k"]
    outgoing: Float[Array, " n *m"]

    def __init__(self, student: Any, teacher: Any, outgoing: Any):
        self.student, self.teacher = jnp.asarray(student, float), jnp.asarray(teacher, float)
        self.outgoing = jnp.asarray(outgoing, float)

    def gram(self, problem: OrderProblem) -> np.ndarray:
        """Overlaps of all neurons, students first."""
        q, r = np.asarray(self.student), np.asarray(self.teacher)
        return np.block([[q, r], [r.T, np.asarray(problem.overlaps)]])


def overlaps_of(problem: OrderProblem, start: TwoLayer | Overlaps) -> Overlaps:
    """The overlaps of a network, or given ones, checked: shapes, finite numbers, and that some weights have them."""
    if isinstance(start, TwoLayer):
        w, v = np.asarray(start.incoming), np.asarray(problem.incoming)
        if w.ndim != 2 or w.shape[1] != v.shape[1]:
            raise ValueError(
                f"start is one network in the teacher's dimension {v.shape[1]}: incoming weights ({problem.width}, "
                f"{v.shape[1]}); received shape {w.shape}. Or give understudy.online.Overlaps."
            )
        start = Overlaps(w @ w.T, w @ v.T, start.outgoing)
    if not isinstance(start, Overlaps):
        raise TypeError(f"start is a TwoLayer network or Overlaps; received {type(start).__name__}.")
    n, k = problem.width, problem.teachers
    shapes = (start.student.shape, start.teacher.shape, start.outgoing.shape)
    expected = ((n, n), (n, k), (n, *problem.outputs))
    if shapes != expected:
        raise ValueError(f"start has overlaps and outgoing weights of shapes {shapes}; this task needs {expected}.")
    gram = start.gram(problem)
    if not (np.all(np.isfinite(gram)) and np.all(np.isfinite(np.asarray(start.outgoing)))):
        raise ValueError("Overlaps and outgoing weights of a start must be finite.")
    if not np.allclose(gram, gram.T, rtol=0, atol=_TOLERANCE * max(1.0, np.abs(gram).max())):
        raise ValueError("The overlaps of students with students must be symmetric.")
    least = float(np.linalg.eigvalsh(gram)[0])
    if least < -_TOLERANCE * max(1.0, np.abs(gram).max()):
        raise ValueError(
            f"No weights have these overlaps: the Gram matrix of students and teachers has the eigenvalue {least:.3g}."
        )
    if problem.student.smoothness == 0 and np.any(np.diagonal(np.asarray(start.student)) <= 0):
        raise ValueError(
            f"With {problem.student.name} the gradient does not exist for a student with a zero incoming vector. Start "
            "with positive norms."
        )
    if problem.fixed_outgoing is not None:
        fixed = np.asarray(problem.fixed_outgoing).reshape(n, *problem.outputs)
        if not np.allclose(np.asarray(start.outgoing), fixed, rtol=0, atol=1e-12):
            raise ValueError(
                "This task has fixed outgoing weights, and those of the start differ. Leave them as in the task."
            )
    return start


def random_overlaps(
    problem: OrderProblem, seed: int = 0, *, dim: int = 1000, norm: float = 0.5, outgoing: float | None = None
) -> Overlaps:
    """Overlaps of a random start in dimension `dim`: incoming weights N(0, norm²/dim), so that ‖w_i‖ ≈ `norm`.

    Trained outgoing weights are N(0, `outgoing`²), by default with `norm` as standard deviation; fixed ones are kept.
    Students overlap with each other and with teachers by about norm/√dim, which a run needs to leave symmetric points.
    """
    if dim < problem.width + problem.teachers:
        raise ValueError(
            f"dim must be at least students + teachers = {problem.width + problem.teachers}; received {dim}."
        )
    if not (np.isfinite(norm) and norm > 0):
        raise ValueError(f"norm must be a positive number; received {norm!r}.")
    rng = np.random.default_rng(seed)
    v = teacher_coordinates(problem)
    w = norm / np.sqrt(dim) * rng.standard_normal((problem.width, dim))
    std = norm if outgoing is None else outgoing
    a = std * rng.standard_normal((problem.width, problem.output_count))
    if problem.fixed_outgoing is not None:
        a = np.asarray(problem.fixed_outgoing)
    return Overlaps(w @ w.T, w[:, : v.shape[1]] @ v.T, a.reshape(problem.width, *problem.outputs))


def teacher_coordinates(problem: OrderProblem) -> np.ndarray:
    """Teachers (k, k) with the problem's overlaps: a square root of their Gram matrix."""
    values, vectors = np.linalg.eigh(np.asarray(problem.overlaps))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def weights_of(problem: OrderProblem, overlaps: Overlaps, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Students (n, dim) and teachers (k, dim) with these overlaps: teachers in the first k coordinates, what students
    have outside the teachers' span in the next n.
    """
    n, k = problem.width, problem.teachers
    if dim < n + k:
        raise ValueError(f"{n} students and {k} teachers with given overlaps need dimension {n + k}; received {dim}.")
    v = teacher_coordinates(problem)
    inside = np.asarray(overlaps.teacher) @ np.linalg.pinv(v).T
    outside = np.asarray(overlaps.student) - inside @ inside.T
    values, vectors = np.linalg.eigh((outside + outside.T) / 2)
    w = np.zeros((n, dim))
    w[:, :k] = inside
    w[:, k : k + n] = vectors * np.sqrt(np.maximum(values, 0.0))
    return w, np.pad(v, ((0, 0), (0, dim - k)))


def pack(student: Any, teacher: Any, outgoing: Any, trained: bool) -> Any:
    """One flat vector: the upper triangle of Q, R, and the outgoing weights if they are trained."""
    xp: Any = jnp if isinstance(student, Array) else np
    upper = np.triu_indices(student.shape[0])
    parts = [student[upper], teacher.ravel(), *([outgoing.ravel()] if trained else [])]
    return xp.concatenate(parts)


def unpack(problem: OrderProblem, vector: Array | np.ndarray) -> tuple[Array, Array, Array]:
    """Q (n, n), R (n, k) and a (n, m) from a flat vector."""
    n, k, m = problem.width, problem.teachers, problem.output_count
    upper = np.triu_indices(n)
    size = len(upper[0])
    q = jnp.zeros((n, n)).at[upper].set(vector[:size]).at[upper[1], upper[0]].set(vector[:size])
    vector = jnp.asarray(vector)
    r = vector[size : size + n * k].reshape(n, k)
    a = vector[size + n * k :].reshape(n, m) if problem.fixed_outgoing is None else problem.fixed_outgoing
    return q, r, a


def unpack_rows(problem: OrderProblem, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Overlaps and outgoing weights of many flat vectors (times, P), the times first."""
    n, k, count = problem.width, problem.teachers, len(vectors)
    upper = np.triu_indices(n)
    size = len(upper[0])
    q = np.zeros((count, n, n))
    q[:, upper[0], upper[1]] = q[:, upper[1], upper[0]] = vectors[:, :size]
    r = vectors[:, size : size + n * k].reshape(count, n, k)
    shape = (count, n, *problem.outputs)
    if problem.fixed_outgoing is not None:
        return q, r, np.broadcast_to(np.asarray(problem.fixed_outgoing).reshape(shape[1:]), shape)
    return q, r, vectors[:, size + n * k :].reshape(shape)
