r"""What a critical point becomes when a neuron is split: a minimum, a strict saddle, or neither.

Let θ be critical and neuron j, with incoming vector w and outgoing weights a, be split into parts (w, μa) and (w,
(1-μ)a). The Hessian there is congruent to the direct sum of the Hessian at θ and of

[[μ(1-μ) Y, -V], [-Vᵀ, 0]],  Y = ⟨σ''(w·x) xxᵀ a·c'⟩,  V = ⟨σ'(w·x) x c'ᵀ⟩      ("few neurons", Theorem 4.1, Eq. 18-19),

so the inertia of both together is that of the split point (Sylvester). Va = ∂L/∂w = 0, hence V = 0 for one output. For
a hidden layer of a deep network x is the input of the layer, with a 1 for the bias, and c' is the derivative of the
cost by the input of the next layer. The congruence also removes the blocks between the split neuron and the others.
(Eq. 100 prints these blocks as zero, but they are not.) The parts couple to any third neuron in the ratio μ : 1-μ
(incoming) and equally (outgoing), and the new coordinates (1-μ)δw_1 - μδw_2 and δa_2 - δa_1 make exactly these
combinations vanish.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from understudy.tasks.task import Task

Scenario = Literal["i", "ii", "iii", "degenerate"]


class Inertia(NamedTuple):
    """Numbers of negative, zero and positive eigenvalues."""

    negative: int
    zero: int
    positive: int

    def plus(self, other: "Inertia") -> "Inertia":
        """The inertia of the direct sum."""
        return Inertia(*(a + b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True)
class SplitMatrices:
    """Y (q, q) and V (q, m) of one neuron at a critical point; q counts its incoming weights, a bias included.

    With a penalty λ‖θ‖² on all weights (`decay` λ), homogeneous neurons are split into parts (√μ w, √μ a). The loss of
    one neuron p = (w, a) is then homogeneous of degree two, and in the orthogonal coordinates (√μ δp_1 + √(1-μ) δp_2,
    √(1-μ) δp_1 - √μ δp_2) the Hessian of the split point is the direct sum of the Hessian at θ and of [[Y + 2λI, V],
    [Vᵀ, 2λI]], whatever μ is.
    """

    curvature: np.ndarray
    coupling: np.ndarray
    decay: float = 0.0

    def block(self, mu: float) -> np.ndarray:
        """[[μ(1-μ)Y, -V], [-Vᵀ, 0]] of Eq. 18; with a penalty, [[Y + 2λI, V], [Vᵀ, 2λI]]."""
        q, m = self.coupling.shape
        if self.decay:
            top = np.hstack([self.curvature, self.coupling])
            return np.vstack([top, np.hstack([self.coupling.T, np.zeros((m, m))])]) + 2 * self.decay * np.eye(q + m)
        corner = np.zeros((m, m))
        return np.block([[mu * (1 - mu) * self.curvature, -self.coupling], [-self.coupling.T, corner]]).reshape(
            q + m, q + m
        )

    def inertia(self, mu: float, threshold: float | None = None) -> Inertia:
        """Signs of the q + m eigenvalues that a split at μ adds; |eigenvalue| ≤ `threshold` counts as zero."""
        block = self.block(mu)
        return inertia_of(block, self.threshold if threshold is None else threshold)

    @property
    def threshold(self) -> float:
        """Eigenvalues of at most this size are zero: 1e-9 of the largest entry, as V has the error of the gradient."""
        return 1e-9 * max(float(np.abs(self.curvature).max()), self._largest_coupling, 2 * self.decay, 1e-300)

    @property
    def _largest_coupling(self) -> float:
        return float(np.abs(self.coupling).max(initial=0.0))

    @property
    def scenario(self) -> Scenario:
        """i: Y positive definite; ii: negative definite; iii: both signs ("few neurons", Section 4).

        `"degenerate"`: Y has a zero eigenvalue and no two signs, or V ≠ 0, which makes every split a strict saddle, or
        there is a penalty, under which μ makes no difference.
        """
        values = np.linalg.eigvalsh(self.curvature)
        if self.decay or self._largest_coupling > self.threshold:
            return "degenerate"
        if values[0] > self.threshold:
            return "i"
        if values[-1] < -self.threshold:
            return "ii"
        return "iii" if values[0] < -self.threshold and values[-1] > self.threshold else "degenerate"

    def upper_bound(self, mu: np.ndarray | float) -> np.ndarray:
        """Lemma 4.2: λ† ≤ u(μ) λ_min(Y) for μ in [0, 1], else u(μ) λ_max(Y), u(μ) = μ(1-μ)/(μ² + (1-μ)²).

        λ† is the least eigenvalue of the Hessian at the split point if that is negative, and otherwise the least one
        apart from the zero along the line of split points. One output, or V = 0. With V ≠ 0 or a penalty there is no
        such bound, and the result is NaN.
        """
        if self.decay or self._largest_coupling > self.threshold:
            return np.full(np.shape(mu), np.nan)
        values = np.linalg.eigvalsh(self.curvature)
        share = mixing(mu)
        return np.asarray(np.where(share >= 0, share * values[0], share * values[-1]))


def mixing(mu: np.ndarray | float) -> np.ndarray:
    """u(μ) = μ(1-μ)/(μ² + (1-μ)²), from -½ at infinity to ½ at μ = ½; written without μ² - μ² at infinity."""
    m = np.asarray(mu, float)
    return np.asarray(0.5 / (2 * m**2 - 2 * m + 1) - 0.5)


def expected_kind(scenario: Scenario, mu: float) -> Literal["minimum", "strict saddle", "non-strict saddle"] | None:
    """What splitting a neuron of a minimum with a nonsingular Hessian gives at μ, one output ("few neurons", Section
    4).

    At μ = 0 and 1 the added block vanishes, but strict saddles lie arbitrarily near on the line: a non-strict saddle.
    """
    if scenario == "degenerate":
        return None
    if mu in (0.0, 1.0):
        return "non-strict saddle"
    inside = 0 < mu < 1
    if scenario == "iii":
        return "strict saddle"
    return "minimum" if inside == (scenario == "i") else "strict saddle"


def inertia_of(matrix: np.ndarray, threshold: float) -> Inertia:
    """Signs of the eigenvalues of a symmetric matrix; |eigenvalue| ≤ `threshold` counts as zero."""
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
    negative, positive = int(np.sum(values < -threshold)), int(np.sum(values > threshold))
    return Inertia(negative, len(values) - negative - positive, positive)


def split_matrices(task: Task, parameters: Any, neuron: int, *, layer: int = 0) -> SplitMatrices:
    """Y and V of one neuron, from the task's own expectations, without the Hessian of the wider network.

    **Arguments**

    - `task`: any task with hidden neurons whose derivatives are known; see `Task.split_terms`.
    - `parameters`: a network or its flat vector; `neuron`: which; `layer`: the hidden layer of a deeper network.

    >>> import understudy as us
    >>> task = us.Population(us.Teacher.orthonormal(2, activation="softplus"), width=1)
    >>> point = us.TwoLayer([[0.460676510611, 0.460676510611]], [2.167918288896])  # the optimal neuron
    >>> split_matrices(task, point, 0).scenario
    'iii'
    """
    y, v, decay = task.split_terms(parameters, neuron, layer)
    return SplitMatrices((y + y.T) / 2, v, decay)


def descent_beside(
    task: Task, line: Callable[[float], Any], mu: float, steps: Sequence[float] = (0.2, 0.1, 0.05, 0.025)
) -> list[float]:
    """How far the loss falls within shrinking distances of the split point at μ, starting from its neighbours on the
    line.

    The loss is constant along the line `line(μ)`; at μ ± step the point is pushed along ± its least eigenvector, by
    step × 10^(-i/2), i = 0 … 8. The result has one number per step: the largest fall of all pushes. If it is positive
    for every step, the point is not a minimum, however flat its Hessian is. This is the argument of "few neurons",
    Section 4, for μ = 0 and 1.
    """
    base = float(task.loss(line(mu)))
    falls = []
    for step in steps:
        losses = []
        for side in (step, -step):
            vector = np.asarray(task.flatten(line(mu + side)))
            hessian = np.asarray(task.hessian(vector))
            direction = np.linalg.eigh((hessian + hessian.T) / 2)[1][:, 0]
            sizes = step * 10.0 ** (-np.arange(9) / 2)
            pushed = vector + np.concatenate([sizes, -sizes])[:, None] * direction
            losses.append(float(np.min(np.asarray(task.loss(pushed)))))
        falls.append(base - min(losses))
    return falls


@dataclass(frozen=True)
class LowerBound:
    """H(μ) = μ² M_2 + μ M_1 + M_0 with M_2 ⪰ 0: λ_min(H(μ)) ≥ λ_min(M_0) + μ λ_min(M_1), or μ λ_max(M_1) for μ < 0."""

    constant: float
    least_slope: float
    largest_slope: float
    least_quadratic: float

    def __call__(self, mu: np.ndarray | float) -> np.ndarray:
        """The bound at μ."""
        m = np.asarray(mu, float)
        return np.asarray(self.constant + np.where(m >= 0, m * self.least_slope, m * self.largest_slope))


def lower_bound(at_minus_one: np.ndarray, at_zero: np.ndarray, at_one: np.ndarray) -> LowerBound:
    """Lemma D.2's bound ("few neurons", App. D.2.1) from the Hessians at the splits μ = -1, 0, 1.

    The Hessian is a quadratic polynomial in μ, so three of its values give M_0, M_1 and M_2 exactly, the blocks between
    the split neuron and the others included. It needs M_2 ⪰ 0, i.e. a cost convex in the prediction; `least_quadratic`
    shows whether this holds.
    """
    quadratic = (at_one + at_minus_one) / 2 - at_zero
    linear = (at_one - at_minus_one) / 2
    first, second, third = (np.linalg.eigvalsh((x + x.T) / 2) for x in (at_zero, linear, quadratic))
    return LowerBound(float(first[0]), float(second[0]), float(second[-1]), float(third[0]))


def zeros_of_coupling(coupling: np.ndarray, threshold: float) -> int:
    """Exact number of zero eigenvalues of [[0, V], [Vᵀ, 0]], V (q, m): q - m + 2 dim Null(V).

    The nonzero ones are ± the singular values of V. Lemma D.2 gives this for dim Null(V) = 1 and a lower bound
    otherwise.
    """
    q, m = coupling.shape
    rank = int(np.sum(np.linalg.svd(coupling, compute_uv=False) > threshold))
    return q + m - 2 * rank


def non_trivial(eigenvalues: np.ndarray, threshold: float) -> float:
    """λ† of Lemma 4.2: the least eigenvalue if negative, else the second one (the first is the zero along the line)."""
    values = np.sort(eigenvalues)
    return float(values[0]) if values[0] < -threshold else float(values[1]) if len(values) > 1 else math.nan
