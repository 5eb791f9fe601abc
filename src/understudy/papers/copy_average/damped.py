"""Claim `damped`: the average is damped, r ≤ 1/√k and a ≥ k."""

import math

import numpy as np

from understudy.papers.check import at_least, at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.theory import one_neuron

    checks, measured = [], {}
    ks = settings["teachers"]
    for name in progress.over(settings["activations"], "damped average,"):
        points = [one_neuron(name, k) for k in ks]
        norm = np.array([p.norm * math.sqrt(k) for p, k in zip(points, ks, strict=True)])
        outgoing = np.array([p.outgoing / k for p, k in zip(points, ks, strict=True)])
        checks.append(at_most(f"{name}: r√k", norm, bound=1 + 1e-11))
        checks.append(at_least(f"{name}: a/k", outgoing, bound=1 - 1e-11))
        measured[name] = {
            "r√k": [float(norm.min()), float(norm.max())],
            "a/k": [float(outgoing.min()), float(outgoing.max())],
        }
    return Measurement(
        checks,
        measured,
        notes="Equality holds for k = 1, the copy. softplus:4 and :8 are beyond what the paper proves.",
    )


CLAIM = Claim(
    paper="copy-average",
    id="damped",
    where="Thm 5.3, Fig. 5, 10",
    statement=(
        "The best single neuron has a norm of at most 1/√k and an outgoing weight of at least k: softplus with β ≤ 2, "
        "numerically tanh and sigmoid."
    ),
    paper_value="r ≤ 1/√k, a ≥ k",
    measured_by="The one-neuron solver for many k.",
    tolerance=1e-11,
    tolerance_reason="The solver's own accuracy.",
    quick={
        "activations": ["softplus:0.5", "softplus", "softplus:2", "softplus:4", "sigmoid", "tanh:0.5", "erf"],
        "teachers": [1, 2, 3, 5, 10, 30, 100],
    },
    full={
        "activations": [
            "softplus:0.1",
            "softplus:0.5",
            "softplus",
            "softplus:1.5",
            "softplus:2",
            "softplus:4",
            "softplus:8",
            "sigmoid",
            "tanh:0.5",
            "tanh",
            "erf",
        ],
        "teachers": list(range(1, 101)),
    },
    measure=_measure,
)
