"""Claim `no-others`: one student has no critical points but those of equal correlations, and Lemma G.2's condition.

`one-neuron` looks for points with equal correlations. Here the whole space of one neuron is searched, also outside the
teachers' span.
"""

from typing import Any

import numpy as np

from understudy.papers.check import at_least, at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

STEP = 1e-5  # of central differences in u: their error is about 1e-10
UNEQUAL = ((1.0, 0.5, 1.5), (1.0, 1.4, 0.7))
"""Outgoing weights and norms of three orthogonal teachers, for Lemma G.2."""


def _multipliers(name: str, point: Any, outgoing: Any, norms: Any) -> np.ndarray:
    """b_j ∂_u g(r, ‖v_j‖, u_j)/u_j for each teacher j: Lemma G.2 says that they are equal."""
    import understudy as us

    def slope(u: float, norm: float) -> float:
        ahead, behind = (us.interaction(name, point.norm, norm, u + shift) for shift in (STEP, -STEP))
        return float(ahead - behind) / (2 * STEP)

    pairs = zip(outgoing, norms, point.correlations, strict=True)
    return np.array([b * slope(u, norm) / u for b, norm, u in pairs])


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.theory.any_teacher import one_neuron_points
    from understudy.theory.one_neuron import critical_points

    cases = [(name, k) for name, ks in settings["teachers"].items() for k in ks]
    unequal, outside, counts, wanted, complete, starts = [], [], {}, {}, [], 0
    for name, k in progress.over(cases):
        found = one_neuron_points(name, np.ones(k), np.eye(k), starts=settings["starts"])
        u = np.array([p.correlations for p in found.points])
        unequal.append(np.max(np.abs(u - u[:, :1])))
        outside.append(max(p.outside for p in found.points))
        odd = name in ("erf", "tanh:0.5")  # the search gives one of a point and its mirror image
        predicted = [p for p in critical_points(name, k) if p.correlation > 0 or not odd]
        counts[f"{name}, k = {k}"], wanted[f"{name}, k = {k}"] = len(found.points), len(predicted)
        complete.append(found.complete or k > 4)
        starts += found.starts
    spreads, correlations = [], []
    for name in settings["unequal"]:
        norms = np.array(UNEQUAL[1])
        for point in one_neuron_points(name, UNEQUAL[0], np.diag(norms**2)).points:
            multipliers = _multipliers(name, point, UNEQUAL[0], norms)
            spreads.append(np.ptp(multipliers) / np.abs(multipliers).max())
            correlations.append(np.ptp(point.correlations))
            outside.append(point.outside)
    checks = [
        at_most("Thm 5.1: differences between the correlations of a critical point", unequal, bound=1e-7),
        at_most("Prop. 4.1: part of the incoming vector outside the span", outside, bound=1e-7),
        equal("number of critical points, as among equal correlations", list(wanted.values()), list(counts.values())),
        equal("two grids find the same points, up to four teachers", True, all(complete)),
        at_most("Lemma G.2: relative spread of b_j ∂_u g/u_j at points of unequal teachers", spreads, bound=1e-8),
        at_least("there the correlations differ", correlations, bound=1e-2),
    ]
    measured = {"points found": counts, "starts": starts, "points of unequal teachers": len(spreads)}
    return Measurement(checks, measured)


CLAIM = Claim(
    paper="copy-average",
    id="no-others",
    where="Thm 5.1 (G.3), Prop. 4.1, Lemma G.2",
    statement=(
        "Every critical point of one student with a ≠ 0 and w ≠ 0 lies in the span of orthogonal teachers and satisfies "
        "b_j ∂_u g(r, ‖v_j‖, u_j) = λu_j; for unit orthonormal teachers all its correlations are equal."
    ),
    paper_value="u_1 = … = u_k = ±1/√k",
    measured_by=(
        "∇L = 0 solved from grids of starts in the span and one further direction (two grids up to four teachers, random "
        "starts beyond); Lagrange multipliers by differentiating the interaction."
    ),
    tolerance="1e-7; 1e-8",
    tolerance_reason="Points are solved to gradients of 1e-12; the least curvature is about 1e-4.",
    quick={"teachers": {"erf": [3]}, "starts": 64, "unequal": ["erf"]},
    full={
        "teachers": {"erf": [2, 3, 6, 10], "sigmoid": [2, 6], "softplus": [2, 6], "tanh:0.5": [2, 6]},
        "starts": 200,
        "unequal": ["erf"],
    },
    measure=_measure,
)
