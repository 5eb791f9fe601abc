"""Claims `relu-points` and `softplus-proof`: the critical points of one ReLU neuron, and two steps of the proof of
Theorem 3.4.
"""

from typing import Any

from understudy.papers.check import at_least, at_most, close
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

NODES = 200  # of the Gauss-Hermite rule in each of two dimensions


def _measure_points(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    import understudy as us

    gradients, strengths, kinds = [], [], []
    for k in progress.over(settings["teachers"], "teachers"):
        task = us.Population(us.Teacher.orthonormal(k, activation="relu"), width=1)
        # w = -(1, …, 1)/√k. ∂L/∂a = 0 gives a = Σ_j g(w, v_j)/g(w, w), g(w, w) = ½ for ReLU.
        overlap = float(us.interaction("relu", 1.0, 1.0, -1 / np.sqrt(k)))
        strength = 2 * k * overlap
        point = us.TwoLayer(np.full((1, k), -1 / np.sqrt(k)), np.array([strength]))
        gradients.append(float(np.linalg.norm(task.gradient(task.flatten(point)))))
        strengths.append(strength)
        kinds.append(us.certify(task, point).kind)
    return Measurement(
        checks=[
            at_most("gradient norm at w = -(1, …, 1)/√k, ‖w‖a = k h(-1/√k)/h(1)", gradients, bound=1e-12),
            at_least("‖w‖a there", strengths, bound=1e-3),
        ],
        measured={
            "‖w‖a": dict(zip(map(str, settings["teachers"]), strengths, strict=True)),
            "kinds": sorted(set(kinds)),
        },
        printed=[
            at_most("‖w‖a of every critical point but the global minimum is 0, as printed", strengths, bound=1e-12)
        ],
        erratum_note=(
            "For k ≥ 2 the ray w ∝ -(1, …, 1), u = -1/√k, is critical too, with a positive outgoing weight. The proof "
            "excludes it by Theorem 3.2; the exact gradient vanishes there."
        ),
    )


RELU_POINTS = Claim(
    paper="few-neurons",
    id="relu-points",
    where="Thm 3.3",
    statement=(
        "For k > 1 orthonormal ReLU teachers the only critical point of one neuron besides the global minima is w = 0, "
        "a = 0."
    ),
    paper_value="w = 0, a = 0",
    measured_by="The exact gradient at equal correlations -1/√k, with the outgoing weight that makes ∂L/∂a zero.",
    tolerance="1e-12",
    tolerance_reason="Rounding of a closed form.",
    quick={"teachers": [2, 4]},
    full={"teachers": [2, 3, 4, 5, 6, 7, 8, 9, 10]},
    measure=_measure_points,
)


def _expectations(r: float, u: float) -> dict[str, float]:
    """Gaussian expectations of softplus at r x and y = u x + √(1-u²) z, by a product rule."""
    import numpy as np

    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    x, z = nodes[:, None], nodes[None, :]
    y = u * x + np.sqrt(1 - u**2) * z

    def mean(values: Any) -> float:
        return float(weights @ np.broadcast_to(values, (NODES, NODES)) @ weights)

    def gate(t: Any) -> Any:
        return 1 / (1 + np.exp(-t))

    value, slope, bend = np.logaddexp(0, r * x), gate(r * x), gate(r * x) * (1 - gate(r * x))
    other, other_slope = np.logaddexp(0, y), gate(y)
    return {
        "top": mean(slope * other * x),
        "bottom": mean(value * other),
        "top, by Price": mean((r * bend * x + slope) * other_slope),
        "bottom, by Price": mean(r * slope * other_slope),
        "top, as printed": mean(slope * other_slope * x**2),
        "bottom, as printed": mean(value * other_slope * x),
    }


def _slope(found: dict[str, float], kind: str) -> float:
    top, bottom = found["top"], found["bottom"]
    return found[f"top, {kind}"] / bottom - top * found[f"bottom, {kind}"] / bottom**2


def _measure_proof(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    import understudy as us

    grid = [(r, u) for r in settings["norms"] for u in settings["correlations"]]
    step = 1e-5
    measured, exact, printed = [], [], []
    for r, u in progress.over(grid):
        ahead, behind, here = (_expectations(r, u + shift) for shift in (step, -step, 0.0))
        measured.append((ahead["top"] / ahead["bottom"] - behind["top"] / behind["bottom"]) / (2 * step))
        exact.append(_slope(here, "by Price"))
        printed.append(_slope(here, "as printed"))
    ratios = [us.theory.one_neuron("softplus", k).norm * np.sqrt(k) for k in settings["teachers"]]
    return Measurement(
        checks=[
            close("∂_u of Eq. 76 by differences against Price's theorem", exact, measured, 1e-8),
            at_least("∂_u of Eq. 76: Lemma C.1 holds on the grid", exact, bound=1e-6),
            at_most("r/u at the fixed points of softplus: r ≤ u", ratios, bound=1.0),
        ],
        measured={
            "largest error of the printed ∂_u": float(np.max(np.abs(np.subtract(printed, measured)))),
            "r/u": ratios,
        },
        printed=[
            close("∂_u of Eq. 76 as printed, without the term of dy/du in z", printed, measured, 1e-8),
            at_least("r/u at the fixed points of softplus: r ≥ u, as printed", ratios, bound=1.0),
        ],
        erratum_note=(
            "With y = ux + √(1-u²) z, dy/du = x - uz/√(1-u²); the proof of Lemma C.1 keeps x only. The lemma holds "
            "wherever we look. The summary of C.3.2 ends with r ≥ u where C.3.3 uses u ≥ r, which holds."
        ),
    )


SOFTPLUS_PROOF = Claim(
    paper="few-neurons",
    id="softplus-proof",
    where="Lemma C.1, App. C.3.2",
    statement=(
        "Eq. 76 increases with the correlation u, with the derivative that the proof of Lemma C.1 gives; fixed points "
        "have r ≥ u."
    ),
    paper_value="∂_u G̃ of the proof; r ≥ u",
    measured_by=(
        "Gauss-Hermite sums for the expectations, Price's theorem and differences for the derivative, and the "
        "one-neuron solutions."
    ),
    tolerance="1e-8",
    tolerance_reason="Central differences with a step of 1e-5: h² times the third derivative, and rounding over h.",
    quick={"norms": [0.5], "correlations": [0.1, 0.5], "teachers": [2, 4]},
    full={
        "norms": [0.1, 0.5, 1.0, 2.0],
        "correlations": [0.05, 0.2, 0.4, 0.6, 0.8, 0.95],
        "teachers": [2, 3, 4, 5, 6, 7, 8, 9, 10],
    },
    measure=_measure_proof,
)
