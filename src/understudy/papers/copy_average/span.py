"""Claim `span`: a critical neuron lies in the span of the teachers."""

from typing import Any

import numpy as np

from understudy.papers.check import at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

FARTHEST = 20.0
"""Norm of w beyond which the gradient of bounded activations fades below any tolerance without a critical point."""


def _task(name: str, k: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """One neuron and orthogonal teachers of different norms and outgoing weights, turned away from the axes."""
    import understudy as us

    d = k + 3
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0][:k]
    norms, outgoing = rng.uniform(0.6, 1.6, k), rng.uniform(0.5, 1.5, k)
    return us.Population(us.Teacher(norms[:, None] * basis, outgoing, name), width=1), basis


def _outside(task: Any, basis: np.ndarray, point: Any) -> float:
    """The relative part of w outside the span; NaN for a trivial point (a or w zero) and far out, where ∇L fades."""
    w, a = np.asarray(point.incoming)[0], float(point.outgoing[0])
    norm = float(np.linalg.norm(w))
    if min(norm, abs(a), norm * abs(a)) < 1e-6 or norm > FARTHEST:
        return float("nan")
    return float(np.linalg.norm(w - basis.T @ (basis @ w)) / norm)


def _searched(task: Any, rng: np.random.Generator, count: int) -> list[Any]:
    """Critical points of any kind, by Newton's method on the gradient from random starts: saddles attract as well."""
    from understudy.points.plateaus import nearest_critical

    found = []
    for _ in range(count):
        start = rng.normal(size=task.size) * np.append(np.full(task.size - 1, 0.5), 2.0)
        vector, norm = nearest_critical(task, start)
        if norm < 1e-11:
            found.append(task.unflatten(task.flatten(vector)))
    return found


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import understudy as us

    outside, gradients, kinds, searched = [], [], [], []
    saddles = 0
    rng: Any = np.random.default_rng(3)
    for name in progress.over(settings["activations"], "one neuron,"):
        task, basis = _task(name, settings["teachers"], rng)
        for run in us.fit(task, seeds=settings["seeds"]):
            part = _outside(task, basis, run.parameters)
            if not np.isnan(part):
                outside.append(part)
                gradients.append(run.certificate.gradient_norm)
                kinds.append(run.certificate.kind)
        if name == "relu":  # Newton's method needs second derivatives
            continue
        for point in _searched(task, rng, settings["searches"]):
            part = _outside(task, basis, point)
            if not np.isnan(part):
                searched.append(part)
                saddles += int(np.linalg.eigvalsh(np.asarray(task.hessian(point)))[0] < -1e-9)
    checks = [
        at_most("relative part of w outside the span", outside, bound=1e-9),
        at_most("gradient norm", gradients, bound=1e-10),
        equal("points that are not critical", 0, sum(kind == "unconverged" for kind in kinds)),
        at_most("the same for critical points of any kind, by Newton's method", searched, bound=1e-6),
    ]
    measured = {
        "points": len(outside),
        "largest part outside the span": max(outside),
        "critical points found by Newton's method, saddles among them": [len(searched), saddles],
    }
    return Measurement(checks, measured)


CLAIM = Claim(
    paper="copy-average",
    id="span",
    where="Prop. 4.1",
    statement=(
        "Every non-trivial critical point of one student neuron lies in the span of an orthogonal teacher's vectors."
    ),
    paper_value="0 outside the span",
    measured_by=(
        "Flows and Newton's method from random starts in three more dimensions than teachers, unequal norms and "
        "outgoing weights."
    ),
    tolerance="1e-9; 1e-6 by Newton's method",
    tolerance_reason=(
        "Gradient norms of 1e-12 divided by the least curvature outside the span, about 1e-2; saddles with smaller "
        "curvatures are among those that Newton's method finds."
    ),
    quick={"activations": ["erf", "relu"], "teachers": 3, "seeds": 5, "searches": 20},
    full={
        "activations": ["erf", "softplus", "sigmoid", "tanh:0.5", "relu"],
        "teachers": 6,
        "seeds": 20,
        "searches": 60,
    },
    measure=_measure,
)
