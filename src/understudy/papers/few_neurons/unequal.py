"""Claim `unequal-correlations`: Theorem 3.2 on the activation exp(βx), where a critical point aligns unequally.

With σ(x) = exp(βx) and b = β² the interaction is g(r1, r2, u) = exp(b(r1² + r2²)/2 + b r1 r2 u): it and its derivative
increase in u, which is Assumption 3.1 (i) and (ii)-a. On the sphere Σ u_i² = 1 the loss is stationary where
exp(b r u_i)/u_i is the same for all i. With that, stationarity in r gives r = 1/Σ u_i. So for two teachers any
u = (u_1, u_2) with 0 < u_1 < u_2 is critical at b = (u_1 + u_2) ln(u_2/u_1)/(u_2 - u_1).
"""

from typing import Any

from understudy.papers.check import at_least, at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def critical_point(first: float) -> tuple[float, Any, float]:
    """The exponent b, incoming vector and outgoing weight of the critical point with first correlation `first`."""
    import numpy as np

    u = np.array([first, np.sqrt(1 - first**2)])
    total = u.sum()
    b = total * np.log(u[1] / u[0]) / (u[1] - u[0])
    r = 1 / total
    a = np.sum(np.exp(b * (r**2 + 1) / 2 + b * r * u)) / np.exp(2 * b * r**2)
    return float(b), r * u, float(a)


def gradient(b: float, w: Any, a: float, nodes: int) -> Any:
    """Gradient of E[(a σ(w·x) - σ(x_1) - σ(x_2))²] in (w, a), relative to the size of its terms, by quadrature.

    Gauss-Hermite nodes in both inputs: nothing of the interaction's formula enters.
    """
    import numpy as np

    z, weights = np.polynomial.hermite_e.hermegauss(nodes)
    x = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1).reshape(-1, 2)
    p = np.outer(weights, weights).ravel() / (2 * np.pi)
    beta = np.sqrt(b)
    student = np.exp(beta * x @ w)
    teacher = np.exp(beta * x).sum(axis=1)
    directions = np.column_stack([a * beta * student[:, None] * x, student])
    full = 2 * (p * (a * student - teacher)) @ directions
    return full / (2 * (p * (a * student + teacher)) @ np.abs(directions))


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    gaps, gradients, rises, slopes = [], [], [], []
    example: dict[str, Any] = {}
    for first in progress.over(settings["correlations"]):
        b, w, a = critical_point(first)
        r, u = np.linalg.norm(w), w / np.linalg.norm(w)
        gaps.append(float(abs(u[1] - u[0])))
        gradients.append(float(np.abs(gradient(b, w, a, settings["nodes"])).max()))
        grid = np.linspace(-1, 1, 401)
        for r1, r2 in ((r, 1.0), (1.0, 1.0), (0.1, 3.0)):
            g = np.exp(b * r1 * r2 * (grid - 1))  # up to a positive factor; derivatives multiply it by b r1 r2
            slopes.append(float(min((b * r1 * r2 * g).min(), ((b * r1 * r2) ** 2 * g).min())))
        ratio = np.exp(b * r * u) / u  # ∂_u g/u up to a factor; it is least at u = 1/(b r)
        rises.append(float(ratio.min() / (np.e * b * r) - 1))
        example = example or {"β²": b, "w": w.tolist(), "a": a, "∂_u g/u at both": ratio.tolist()}
    checks = [
        at_most("gradient in w and a at the point, by quadrature, relative to its terms", gradients, bound=1e-13),
        at_least("∂_u g and ∂²_u g on [-1, 1], up to a positive factor: (i) and (ii)-a hold", slopes, bound=1e-12),
        at_least("∂_u g/u at both correlations over its least value between them, less 1", rises, bound=1e-6),
    ]
    return Measurement(
        checks,
        {"smallest and largest |u_1 - u_2|": [min(gaps), max(gaps)], "first example": example},
        printed=[at_most("Thm 3.2: |u_1 - u_2| at a critical point", gaps, bound=1e-9)],
        erratum_note=(
            "σ(x) = exp(βx) increases and is strictly convex, so (i) and (ii)-a hold, and with two teachers it has "
            "critical points with unequal correlations: for u = (0.6, 0.8), β² = 7 ln(4/3), w = (3/7, 4/7). The proof "
            "moves along the chord between u and its mirror image, which leaves the sphere for the interior; on the "
            "boundary that derivative need not vanish. What is needed is that ∂_u g/u decreases, which is (ii) of "
            "'Copy or Average': u ∂²_u g < ∂_u g."
        ),
    )


CLAIM = Claim(
    paper="few-neurons",
    id="unequal-correlations",
    where="Thm 3.2, C.1",
    statement=(
        "Under Assumption 3.1 (i) and (ii), every critical point of one neuron has equal correlations with all "
        "teachers."
    ),
    paper_value="u_i = 1/√k for a > 0",
    measured_by=(
        "A closed form of critical points for exp(βx) and two teachers; their gradient by Gauss-Hermite quadrature."
    ),
    tolerance="relative gradient 1e-13",
    tolerance_reason="Quadrature of exp(βx) with 60 nodes per input is exact to rounding.",
    quick={"correlations": [0.6, 0.3], "nodes": 60},
    full={"correlations": [0.6, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.7], "nodes": 60},
    measure=_measure,
)
