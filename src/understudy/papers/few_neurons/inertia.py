"""Claim `inertia`: signs of the Hessian's eigenvalues at a split point, and the blocks printed as zero."""

from typing import Any

import numpy as np

from understudy.papers.check import at_least, at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.few_neurons.random_points import cases, widened
from understudy.papers.measurement import Measurement

MUS = (-1.3, 0.0, 0.25, 0.5, 1.0, 2.2)
_ZERO = 1e-11
"""Zero eigenvalues beside the largest entry: Hessians and gradients are rounded at 1e-14, others may be as small as
1e-9.
"""

POPULATION = [
    {"kind": "population", "width": 1, "outputs": [], "teachers": 5, "activation": "erf"},
    {"kind": "population", "width": 3, "outputs": [], "teachers": 12, "activation": "erf"},
    {"kind": "population", "width": 2, "outputs": [2], "teachers": 6, "activation": "erf"},
    {"kind": "population", "width": 2, "outputs": [], "teachers": 9, "activation": "softplus"},
]
DATA = [
    {"kind": "data", "width": 1, "outputs": [2]},
    {"kind": "data", "width": 2, "outputs": [], "bias": True},
    {"kind": "data", "width": 3, "outputs": [3], "bias": True},
    {"kind": "data", "width": 4, "outputs": [2], "cost": "log cosh"},
    {"kind": "data", "width": 5, "outputs": []},
    {"kind": "data", "width": 5, "outputs": [3]},
]
DEEP = [
    {"kind": "deep", "widths": [2, 3, 2, 2], "layer": 0, "samples": 60},
    {"kind": "deep", "widths": [2, 2, 3, 1], "layer": 1, "samples": 60},
]


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.points.splitting import inertia_of, split_matrices
    from understudy.surgery import split

    compared, wrong, points, gradients, margins, coupled, congruent = 0, 0, 0, [], [], [], []
    for shape in progress.over(settings["shapes"], "random critical points,"):
        for case in cases(shape, settings["points"]):
            task, network, layer = case
            narrow = np.asarray(task.hessian(network))
            gradients.append(float(np.linalg.norm(np.asarray(task.gradient(network)))))
            threshold = _ZERO * float(np.abs(narrow).max())
            neuron = points % _width(network, layer)
            points += 1
            matrices = split_matrices(task, network, neuron, layer=layer)
            wide_points = [split(network, {neuron: [mu, 1 - mu]}, layer=layer) for mu in MUS]
            wide = widened(task, wide_points[0])
            for mu, point in zip(MUS, wide_points, strict=True):
                hessian = np.asarray(wide.hessian(point))
                values = np.abs(np.linalg.eigvalsh(hessian))
                predicted = inertia_of(narrow, threshold).plus(matrices.inertia(mu, threshold))
                wrong += predicted != inertia_of(hessian, threshold)
                compared += 1
                largest_zero = float(values[values <= threshold].max(initial=0.0))
                margins.append(largest_zero / float(values[values > threshold].min(initial=np.inf)))
                if shape["kind"] == "data" and _width(network, layer) > 1:
                    between, left = _blocks(wide, point, hessian, narrow, matrices, neuron, mu)
                    coupled.append(between / np.abs(hessian).max())
                    congruent.append(left / np.abs(hessian).max())
    checks = [
        equal("split points whose inertia is not the predicted one", 0, int(wrong)),
        at_most("gradient norm of the points", gradients, bound=1e-8),
        at_most("largest eigenvalue counted as zero, beside the least other one", margins, bound=1e-2),
    ]
    if settings["points"] >= 20:
        checks.append(at_least("random critical points", points, bound=200))
    measured: dict[str, Any] = {"critical points": points, "split points": compared, "wrong": int(wrong)}
    printed, note = [], ""
    if coupled:
        checks.append(
            at_most("congruence with the blocks to other neurons kept, largest entry off", congruent, bound=1e-11)
        )
        measured["block between the split neuron and the others, beside the largest entry"] = float(max(coupled))
        measured["after the congruence, off the predicted matrix"] = float(max(congruent))
        printed = [at_most("blocks between the split neuron and the others are zero, as printed", coupled, bound=1e-9)]
        note = (
            "Eq. 100-102 print the blocks between the split neuron and the others as 0. They are not (up to "
            f"{max(coupled):.2f} of the largest entry here): ∂²L/∂w_1∂θ' = μX', ∂²L/∂w_2∂θ' = (1-μ)X', ∂²L/∂a_1∂θ' = "
            "∂²L/∂a_2∂θ'. The matrix A(μ) takes just the combinations (1-μ)·first - μ·second and second - first to "
            "zero, so the theorem holds as stated: A⁻ᵀHA⁻¹ is the direct sum of Eq. 18 and the whole Hessian at θ to "
            f"{max(congruent):.0e}. Below the diagonal -V must be read as -Vᵀ."
        )
    return Measurement(checks, measured, printed=printed, erratum_note=note)


def _width(network: Any, layer: int) -> int:
    return network.hidden_widths[layer]


def _blocks(
    wide: Any, point: Any, hessian: np.ndarray, narrow: np.ndarray, matrices: Any, neuron: int, mu: float
) -> tuple[float, float]:
    """Largest entry between the split neuron and the others, and how far A⁻ᵀHA⁻¹ is from the direct sum."""
    n, d = point.incoming.shape
    m = int(np.prod(point.outgoing.shape[1:], dtype=int))
    w = np.arange(n * d).reshape(n, d)
    a = n * d + np.arange(n * m).reshape(n, m)
    first, second = np.concatenate([w[neuron], a[neuron]]), np.concatenate([w[neuron + 1], a[neuron + 1]])
    own = np.concatenate([first, second])
    others = np.setdiff1d(np.arange(hessian.shape[0]), own)
    between = float(np.abs(hessian[np.ix_(own, others)]).max())
    # Columns of A⁻¹ (Eq. 101): the new directions first, then those of the narrow network, in its order.
    size = hessian.shape[0]
    new = np.zeros((size, d + m))
    new[w[neuron], np.arange(d)], new[w[neuron + 1], np.arange(d)] = 1 - mu, -mu
    new[a[neuron], d + np.arange(m)], new[a[neuron + 1], d + np.arange(m)] = -1.0, 1.0
    old = np.zeros((size, narrow.shape[0]))
    kept = [i for i in range(n) if i != neuron + 1]
    for position, i in enumerate(kept):
        old[w[i], position * d + np.arange(d)] = 1.0
        old[a[i], (n - 1) * d + position * m + np.arange(m)] = 1.0 if i != neuron else mu
    old[w[neuron + 1], neuron * d + np.arange(d)] = 1.0
    old[a[neuron + 1], (n - 1) * d + neuron * m + np.arange(m)] = 1 - mu
    basis = np.concatenate([new, old], axis=1)
    transformed = basis.T @ hessian @ basis
    target = np.zeros_like(transformed)
    target[: d + m, : d + m] = matrices.block(mu)
    target[d + m :, d + m :] = narrow
    return between, float(np.abs(transformed - target).max())


CLAIM = Claim(
    paper="few-neurons",
    id="inertia",
    where="Thm 4.1, Eq. 18-21, 100-102",
    statement=(
        "The signs of the Hessian's eigenvalues where a neuron of a critical point is split are those at the point "
        "itself and those of [[μ(1-μ)Y, -V], [-Vᵀ, 0]]."
    ),
    paper_value="predicted = measured",
    measured_by=(
        "Random critical points (data or teacher chosen so that a random network is critical): widths 1-5, outputs "
        "1-3, with and without biases, two costs, population and data, two-layer and hidden layers, μ inside and "
        "outside [0, 1]; Y and V by Eq. 19, inertia by eigenvalues."
    ),
    tolerance="exact",
    tolerance_reason="Numbers of eigenvalues; those counted as zero are a hundred times smaller than the others.",
    quick={"points": 3, "shapes": [POPULATION[0], DATA[2], DEEP[1]]},
    full={"points": 20, "shapes": [*POPULATION, *DATA, *DEEP]},
    measure=_measure,
)
