"""Claim `span`: a critical neuron lies in the span of the teachers."""

from typing import Any

import numpy as np

from understudy.papers.check import at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import understudy as us

    outside, gradients, kinds = [], [], []
    rng: Any = np.random.default_rng(3)
    for name in progress.over(settings["activations"], "one neuron,"):
        # Orthogonal teachers of different norms and outgoing weights, turned away from the axes.
        k, d = settings["teachers"], settings["teachers"] + 3
        basis = np.linalg.qr(rng.normal(size=(d, d)))[0][:k]
        norms, outgoing = rng.uniform(0.6, 1.6, k), rng.uniform(0.5, 1.5, k)
        task = us.Population(us.Teacher(norms[:, None] * basis, outgoing, name), width=1)
        for run in us.fit(task, seeds=settings["seeds"]):
            w, a = np.asarray(run.parameters.incoming)[0], float(run.parameters.outgoing[0])
            if np.linalg.norm(w) * abs(a) < 1e-6:
                continue  # trivial
            outside.append(np.linalg.norm(w - basis.T @ (basis @ w)) / np.linalg.norm(w))
            gradients.append(run.certificate.gradient_norm)
            kinds.append(run.certificate.kind)
    checks = [
        at_most("relative part of w outside the span", outside, bound=1e-9),
        at_most("gradient norm", gradients, bound=1e-10),
        equal("points that are not critical", 0, sum(kind == "unconverged" for kind in kinds)),
    ]
    return Measurement(checks, {"points": len(outside), "largest part outside the span": max(outside)})


CLAIM = Claim(
    paper="copy-average",
    id="span",
    where="Prop. 4.1",
    statement=(
        "Every non-trivial critical point of one student neuron lies in the span of an orthogonal teacher's vectors."
    ),
    paper_value="0 outside the span",
    measured_by="Flows from random starts in three more dimensions than teachers, unequal norms and outgoing weights.",
    tolerance=1e-9,
    tolerance_reason="Gradient norms of 1e-12 divided by the least curvature outside the span, about 1e-2.",
    quick={"activations": ["erf", "relu"], "teachers": 3, "seeds": 5},
    full={"activations": ["erf", "softplus", "sigmoid", "tanh:0.5", "relu"], "teachers": 6, "seeds": 20},
    measure=_measure,
)
