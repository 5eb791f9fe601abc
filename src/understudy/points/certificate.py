"""What a point is: gradient, inertia, explained and unexplained zero modes, and the verdict that follows."""

from dataclasses import dataclass, field
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from understudy.points.dead_neurons import WayDown, way_down
from understudy.points.flats import FlatFamily, flat_families
from understudy.points.higher_order import HigherOrder, examine
from understudy.points.matrix_free import lowest_eigenpairs
from understudy.tasks.task import Evaluation, Task

Kind = Literal["minimum", "strict saddle", "non-strict saddle", "diverging", "unconverged"]

DENSE = 3_000
"""Up to this many parameters the whole spectrum is computed; beyond, its lower end."""


@dataclass(frozen=True)
class Certificate:
    """The verdict on a point, with the numbers behind it.

    - `gradient_norm`, `newton_decrement` (√(gᵀH⁺g), an estimate of √(2 × excess loss)).
    - `eigenvalues`: ascending, with `multiplicities` (directions orthogonal to all neurons come in bundles);
      `least_eigenvalue` is the first.
    - `threshold`: |eigenvalue| at or below which it counts as zero; `index`, `zeros`, `positives`: the inertia.
    - `explained`: zero modes along which the function stays the same; `unexplained`: the others.
    - `flat_dimension`: dimension of the set of equally good points around a minimum.
    - `way_down`: lower losses through a neuron without outgoing weight, or signs of them; `higher_order`: evidence of
      the test along zero modes, where one was needed.
    - `evidence`: the reasoning, in words; `method`: `"dense"` or `"matrix-free"`.
    - `proof`: what ball arithmetic proved of the point, if that was asked for; see `understudy.proofs`.
    """

    kind: Kind
    loss: float
    gradient_norm: float
    newton_decrement: float
    least_eigenvalue: float
    index: int
    zeros: int
    positives: int
    threshold: float
    explained: int
    unexplained: int
    flat_dimension: int
    method: Literal["dense", "matrix-free"]
    evidence: tuple[str, ...]
    eigenvalues: np.ndarray = field(repr=False)
    multiplicities: np.ndarray = field(repr=False)
    higher_order: HigherOrder | None = None
    way_down: WayDown | None = None
    proof: Any = None


@eqx.filter_jit
def _slope(task: Task, vector: Array) -> tuple[Array, Array]:
    return task.value_and_gradient(vector)


@eqx.filter_jit
def _evaluate(task: Task, vector: Array) -> Evaluation:
    return task.evaluate(vector)


@eqx.filter_jit
def _outside(task: Task, vector: Array) -> Array:
    return task.outside_hessian(vector)


def certify(task: Task, parameters: Any, *, tolerance: float = 1e-10, diverging: str | None = None) -> Certificate:
    """Certify any point of any task.

    **Arguments**

    - `parameters`: a network or its flat vector.
    - `tolerance`: gradient norm up to which the point counts as critical (raised to the gradient's own rounding level
      for large weights); above it the verdict is `"unconverged"`.
    - `diverging`: a finding that the run which led here goes to infinity, which then is the verdict.

    >>> import understudy as us
    >>> task = us.Population(us.Teacher.orthonormal(2), width=2)
    >>> certify(task, us.TwoLayer([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])).kind
    'minimum'
    """
    vector = task.flatten(parameters)
    if vector.ndim != 1:
        raise ValueError(f"certify takes one point at a time; received a batch of shape {vector.shape}.")
    reduction = task.reduce(vector)
    if reduction.outside is None:
        return certify_in_span(task, vector, 0, tolerance=tolerance, diverging=diverging)
    return certify_in_span(
        reduction.task, reduction.vectors, reduction.outside, tolerance=tolerance, diverging=diverging
    )


def certify_in_span(
    task: Task, parameters: Any, outside: int, *, tolerance: float = 1e-10, diverging: str | None = None
) -> Certificate:
    """`certify` for a point of a task that was reduced, with `outside` directions left out (see `Reduction`)."""
    vector = task.flatten(parameters)
    task, vector = task.prepared(vector).chart(vector)
    if task.size > DENSE:
        return _matrix_free(task, vector, outside, tolerance, diverging)
    return _dense(task, np.asarray(vector), outside, tolerance, diverging)


def _dense(task: Task, vector: np.ndarray, outside: int, tolerance: float, diverging: str | None) -> Certificate:
    loss, gradient, hessian = (np.asarray(x) for x in _evaluate(task, jnp.asarray(vector)))
    norm = float(np.linalg.norm(gradient))
    evidence: list[str] = []
    kinks = task.kinks(vector)
    if not (np.all(np.isfinite(hessian)) and np.isfinite(norm)):
        evidence += kinks or ["gradient or Hessian is not finite here"]
        return _without_spectrum(float(loss), norm, "diverging" if diverging else "unconverged", evidence, diverging)
    values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    threshold, moved, unsure = _zero_threshold(task, vector, gradient, hessian, values, vectors)
    multiplicities = np.ones(len(values), int)
    families = flat_families(task, vector)
    explained = _explained(families, values, vectors, threshold)
    if outside:
        extra = np.linalg.eigvalsh(np.asarray(_outside(task, jnp.asarray(vector))))
        values, order = _sorted(np.concatenate([values, extra]))
        multiplicities = np.concatenate([multiplicities, np.full(len(extra), outside)])[order]
        explained += outside * min(
            task.outside_symmetries(jnp.asarray(vector)), int(np.sum(np.abs(extra) <= threshold))
        )
    index = int(multiplicities[values < -threshold].sum())
    zeros = int(multiplicities[np.abs(values) <= threshold].sum())
    own = np.diagonal(vectors.T @ hessian @ vectors)
    usable = np.abs(own) > threshold
    along = vectors.T @ gradient
    decrement = float(np.sqrt(np.sum(along[usable] ** 2 / np.abs(own[usable]))))
    rounding = 1e3 * np.finfo(float).eps * np.abs(own).max() * (1 + np.abs(vector).max())
    unexplained = max(0, zeros - explained)

    higher, down, flat = None, None, explained
    if diverging:
        kind: Kind = "diverging"
        evidence.append(diverging)
    elif norm > max(tolerance, rounding):
        kind = "unconverged"
        evidence.append(f"gradient norm {norm:.2e} is above {max(tolerance, rounding):.0e}")
    elif kinks:
        kind = "unconverged"
        evidence += [f"{k}; no verdict from derivatives" for k in kinks]
    elif moved > 0.1 * (1 + float(np.linalg.norm(vector))):
        kind = "unconverged"
        evidence.append(f"everything is small: Newton's step is {moved:.2g} long, so that no critical point is near")
    elif index:
        kind = "strict saddle"
        evidence.append(f"{index} eigenvalues below -{threshold:.1e}, the least {values[0]:.3e}")
    elif not unexplained:
        kind = "minimum"
        evidence.append(f"least eigenvalue off the zero modes {_first_above(values, threshold):.3e} > {threshold:.1e}")
    elif (down := way_down(task, vector, rounding)) and down.clear:
        kind = "non-strict saddle"
        evidence.append(down.describe())
    else:
        own_values, own_vectors = np.linalg.eigh((hessian + hessian.T) / 2)
        near = min(0.1, task.kink_distance(vector) / 4)
        higher = examine(task, vector, own_values, own_vectors, np.abs(own_values) <= threshold, near)
        evidence.append(f"{unexplained} zero modes without a symmetry behind them; {higher.describe()}")
        flat = zeros if higher.finding == "flat" else explained
        kind = "minimum"
        if higher.finding == "descends":
            kind = "non-strict saddle"
        elif down:
            kind = "unconverged"
            evidence.append(down.describe())
        elif float(loss) <= task.lower_bound + higher.noise / 16:
            evidence.append("the loss is at its lower bound, to rounding")
        elif higher.finding == "undecided":
            kind = "unconverged"
            evidence.append("the higher-order test is undecided")
        elif unsure and higher.finding != "rises":
            kind = "unconverged"
            evidence.append(
                f"{unsure} eigenvalues change by more than a quarter of themselves within Newton's step, and the loss "
                "around is level to rounding: too far from a critical point to tell"
            )
    evidence += [f"{len(f.tangents)} flat directions: {f.name}, {f.detail}" for f in families]
    return Certificate(
        kind=kind,
        loss=float(loss),
        gradient_norm=norm,
        newton_decrement=decrement,
        least_eigenvalue=float(values[0]),
        index=index,
        zeros=zeros,
        positives=int(multiplicities.sum()) - index - zeros,
        threshold=threshold,
        explained=min(explained, zeros),
        unexplained=unexplained,
        flat_dimension=min(flat, zeros) if kind == "minimum" else 0,
        method="dense",
        evidence=tuple(evidence),
        eigenvalues=values,
        multiplicities=multiplicities,
        higher_order=higher,
        way_down=down,
    )


def _zero_threshold(
    task: Task, vector: np.ndarray, gradient: np.ndarray, hessian: np.ndarray, values: np.ndarray, vectors: np.ndarray
) -> tuple[float, float, int]:
    """How large the computed value of an eigenvalue that is truly zero at the true critical point can be.

    Three parts: rounding in the entries and in the eigenvalue solver (16 √P ε ‖H‖_F, with the larger of ‖H‖_F here and
    a tenth aside: where terms cancel, the Hessian is small and its rounding is not), the error of series and
    quadrature (1e-12 of the largest entry, none for closed forms), and the distance to the critical point. For the last
    take Newton's step s in the directions with |eigenvalue| above the threshold, from the gradient or its rounding,
    and D = 4 (H(θ) - H(θ - s)). If ‖|Λ|^(-½) VᵀDV |Λ|^(-½)‖ < 1 for these eigenvalues Λ and eigenvectors V, then Newton's
    method contracts and its limit has the same signs there (Kantorovich's condition as it is invariant under linear
    maps, and Ostrowski's theorem). Around a degenerate point of order m the change is
    1 - (1 - 1/(m-1))^(m-2) ≥ ½ of the eigenvalue, so it is noticed; the direction then counts as a zero mode, an unsure one.
    Also returned: the length of the step, and how many directions are unsure.
    """
    wave = np.cos(np.arange(len(vector)) * 1.7 + 0.3)
    aside = np.asarray(_evaluate(task, jnp.asarray(vector + 0.1 * (1 + np.abs(vector)) * wave)).hessian)
    size = float(np.linalg.norm(hessian))
    size = max(size, float(np.linalg.norm(aside))) if np.all(np.isfinite(aside)) else size
    rounding = 16 * np.sqrt(len(values)) * np.finfo(float).eps * size
    if not task.closed_form:
        rounding += 1e-12 * float(np.abs(hessian).max())
    order = np.argsort(-np.abs(values))
    along = vectors.T @ gradient
    along = np.where(along < 0, -1, 1) * np.maximum(np.abs(along), np.finfo(float).eps * size)
    above = sure = int(np.sum(np.abs(values) > rounding))
    while sure:
        kept, others = order[:sure], order[sure:]
        step = vectors[:, kept] @ (along[kept] / values[kept])
        moved = np.asarray(_evaluate(task, jnp.asarray(vector - step)).hessian)
        if np.all(np.isfinite(moved)):
            change = 4 * vectors.T @ (moved - hessian) @ vectors
            scale = 1 / np.sqrt(np.abs(values[kept]))
            relative = _largest(change[np.ix_(kept, kept)] * np.outer(scale, scale))
            least = float(np.abs(values[kept[-1]]))
            zero = rounding + _largest(change[np.ix_(others, others)])
            if rounding + relative * least < least and zero < least:
                unsure = float(np.abs(values[others]).max(initial=0.0))
                return max(zero, unsure), float(np.linalg.norm(step)), above - sure
        # The softest directions make the step long: without them the change may be small.
        sure = int(np.sum(np.abs(values[kept]) > 3 * np.abs(values[kept[-1]])))
    return max(rounding, float(np.abs(values).max(initial=0.0))), 0.0, above


def _largest(matrix: np.ndarray) -> float:
    """The spectral norm of a symmetric matrix, by thirty power iterations (a tenth is added for what they miss)."""
    x = np.cos(np.arange(len(matrix)) * 1.7 + 0.3)
    size = 0.0
    for _ in range(30):
        x = x / max(float(np.linalg.norm(x)), 1e-300)
        x = matrix @ x
        size = float(np.linalg.norm(x))
    return 1.1 * size


def _explained(families: list[FlatFamily], values: np.ndarray, vectors: np.ndarray, threshold: float) -> int:
    """Dimension of the part of the null space that the families' tangents span."""
    null = vectors[:, np.abs(values) <= threshold]
    if not families or null.shape[1] == 0:
        return 0
    rows = np.concatenate([f.tangents / np.linalg.norm(f.tangents, axis=1, keepdims=True) for f in families])
    _, singular, basis = np.linalg.svd(rows, full_matrices=False)
    basis = basis[singular > 1e-8 * singular[0]]
    return int(np.sum(np.linalg.svd(basis @ null, compute_uv=False) > 0.7))


def _sorted(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(values)
    return values[order], order


def _first_above(values: np.ndarray, threshold: float) -> float:
    above = values[values > threshold]
    return float(above[0]) if len(above) else float("nan")


def _without_spectrum(loss: float, norm: float, kind: Kind, evidence: list[str], diverging: str | None) -> Certificate:
    words = [diverging, *evidence] if diverging else evidence
    nan, empty = float("nan"), np.zeros(0)
    return Certificate(
        kind, loss, norm, nan, nan, 0, 0, 0, nan, 0, 0, 0, "dense", tuple(words), empty, empty.astype(int)
    )


def _matrix_free(task: Task, vector: Array, outside: int, tolerance: float, diverging: str | None) -> Certificate:
    """The verdict from the lower end of the spectrum: enough to tell a minimum from a strict saddle."""
    loss, gradient = _slope(task, vector)
    norm = float(jnp.linalg.norm(gradient))
    kinks = task.kinks(vector)
    if kinks or not np.isfinite(norm):
        words = kinks or ["the gradient is not finite here"]
        return _without_spectrum(float(loss), norm, "diverging" if diverging else "unconverged", words, diverging)
    values, _ = lowest_eigenpairs(task, vector, 12)
    multiplicities, total = np.ones(len(values), int), task.size
    if outside:
        extra = np.linalg.eigvalsh(np.asarray(_outside(task, jnp.asarray(vector))))
        values, order = _sorted(np.concatenate([values, extra]))
        multiplicities = np.concatenate([multiplicities, np.full(len(extra), outside)])[order]
        total += outside * len(extra)
    threshold = 1e-8 * max(1.0, float(np.abs(values).max()))
    index = int(multiplicities[values < -threshold].sum())
    zeros = int(multiplicities[np.abs(values) <= threshold].sum())
    evidence = [f"the 12 lowest eigenvalues of {task.size}, by Lanczos to {threshold:.0e}; index is a lower bound"]
    kind: Kind = "minimum"
    if diverging:
        kind = "diverging"
        evidence.append(diverging)
    elif norm > tolerance:
        kind = "unconverged"
        evidence.append(f"gradient norm {norm:.2e} is above {tolerance:.0e}")
    elif index:
        kind = "strict saddle"
    elif zeros:
        kind = "unconverged"
        evidence.append(f"{zeros} eigenvalues are zero to the accuracy of Lanczos: no verdict without a dense spectrum")
    return Certificate(
        kind=kind,
        loss=float(loss),
        gradient_norm=norm,
        newton_decrement=float("nan"),
        least_eigenvalue=float(values[0]),
        index=index,
        zeros=zeros,
        positives=total - index - zeros,
        threshold=threshold,
        explained=0,
        unexplained=zeros,
        flat_dimension=0,
        method="matrix-free",
        evidence=tuple(evidence),
        eigenvalues=values,
        multiplicities=multiplicities,
    )
