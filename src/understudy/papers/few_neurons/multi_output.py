"""Claim `multi-output`: several outputs make every split point a strict saddle, and how many zeros V gives."""

import numpy as np

from understudy.papers.check import at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.few_neurons.random_points import cases
from understudy.papers.measurement import Measurement


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.points.splitting import inertia_of, split_matrices, zeros_of_coupling

    negatives, nulls, zeros_wrong, points = [], [], 0, 0
    for shape in progress.over(settings["shapes"], "several outputs,"):
        for task, network, layer in cases(shape, settings["points"]):
            matrices = split_matrices(task, network, 0, layer=layer)
            scale = float(np.abs(matrices.coupling).max())
            if scale < 1e-6:
                continue
            points += 1
            a = (
                np.asarray(network.outgoing)[0]
                if hasattr(network, "outgoing")
                else np.asarray(network.weights[layer + 1])[:, 0]
            )
            nulls.append(float(np.linalg.norm(matrices.coupling @ a)) / scale)
            negatives += [matrices.inertia(mu, 1e-9 * scale).negative for mu in (-2.0, 0.0, 0.3, 0.5, 1.0, 1.7)]
            q, m = matrices.coupling.shape
            flat = np.block([[np.zeros((q, q)), matrices.coupling], [matrices.coupling.T, np.zeros((m, m))]])
            zeros_wrong += zeros_of_coupling(matrices.coupling, 1e-9 * scale) != inertia_of(flat, 1e-9 * scale).zero
    rng = np.random.default_rng(0)
    exact, bounded = 0, 0
    drawn = 0
    for q in range(1, 7):
        for m in range(1, 6):
            for rank in range(min(q, m - 1) + 1):
                v = rng.normal(size=(q, rank)) @ rng.normal(size=(rank, m))
                flat = np.block([[np.zeros((q, q)), v], [v.T, np.zeros((m, m))]])
                zeros, null = inertia_of(flat, 1e-10).zero, m - rank
                exact += zeros != q - m + 2 * null
                least = q - m + null if q > m else abs(q - m)
                bounded += zeros < least or (null == 1 and q > m and zeros != q - m + 2)
                drawn += 1
    checks = [
        equal(
            "points without a negative eigenvalue although V ≠ 0 (Lemma D.1)", 0, int(np.sum(np.array(negatives) == 0))
        ),
        at_most("‖Va‖, relative: a is in the null space of V (Eq. 20)", nulls, bound=1e-8),
        equal(
            "critical points whose V gives another number of zeros than d - d_out + 2 dim Null(V)", 0, int(zeros_wrong)
        ),
        equal("random V of every rank with another number of zeros than d - d_out + 2 dim Null(V)", 0, int(exact)),
        equal("random V that contradict Lemma D.2", 0, int(bounded)),
    ]
    measured = {
        "critical points with V ≠ 0": points,
        "random V": drawn,
        "least number of negative eigenvalues": min(negatives),
    }
    notes = (
        "Lemma D.2 gives the exact number of zeros for dim Null(V) = 1 and bounds otherwise; exactly it is d - d_out + "
        "2 dim Null(V) for every "
        "shape and rank. In Eq. 103 the entry is μ(1-μ)Y_kk; the determinant -V_kl² is the same."
    )
    return Measurement(checks, measured, notes=notes)


SHAPES = [
    {"kind": "data", "width": 2, "outputs": [2]},
    {"kind": "data", "width": 3, "outputs": [3], "bias": True},
    {"kind": "deep", "widths": [2, 3, 2, 2], "layer": 0, "samples": 60},
    {"kind": "population", "width": 2, "outputs": [2], "teachers": 6, "activation": "erf"},
    {"kind": "population", "width": 2, "outputs": [3], "teachers": 6, "activation": "erf"},
]

CLAIM = Claim(
    paper="few-neurons",
    id="multi-output",
    where="Lemma D.1, D.2, Eq. 20, 103-105",
    statement=(
        "With several outputs and V ≠ 0 every split point is a strict saddle; at μ = 0, 1 the number of zero "
        "eigenvalues follows from the null space of V."
    ),
    paper_value="≥ 1 negative eigenvalue; d - d_out + 2 zeros if dim Null(V) = 1",
    measured_by=(
        "Eigenvalues of Eq. 18 and 105 at random critical points, and for random matrices V of every shape and rank."
    ),
    tolerance="exact",
    tolerance_reason="Numbers of eigenvalues.",
    quick={"points": 3, "shapes": [SHAPES[1], SHAPES[3]]},
    full={"points": 20, "shapes": SHAPES},
    measure=_measure,
)
