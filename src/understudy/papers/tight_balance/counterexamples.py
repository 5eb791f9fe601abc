"""Two small cases: frames at which the Euclidean gradient vanishes for ρ = 2, and a student that leaves its cone at
n = 2, k = d = 3.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from understudy.papers.check import at_least, at_most
from understudy.papers.claim import Progress, Settings
from understudy.papers.measurement import Measurement
from understudy.tasks.sphere import Sphere


def frames(settings: Settings, progress: Progress) -> Measurement:
    """‖B‖ at random orthonormal frames in the span of the teachers, ρ = 2."""
    rng = np.random.default_rng(0)
    norms = []
    for n, k, d in progress.over(settings["sizes"]):
        task = Sphere(np.eye(k, d), n, activation="hermite:2")
        for _ in range(settings["frames"]):
            rotation, _ = np.linalg.qr(rng.normal(size=(k, k)))
            rows = np.concatenate([rotation[:n], np.zeros((n, d - k))], axis=1)
            norms.append(float(np.linalg.norm(task.euclidean_gradient(jnp.asarray(rows.ravel())))))
    return Measurement(
        checks=[at_most("‖B‖ at orthonormal frames in the teachers' span, ρ = 2, n < k", norms, bound=1e-13)],
        measured={"largest ‖B‖": max(norms), "frames": len(norms)},
        printed=[at_least("Lemma 2.2 at ρ = 2: least ‖B‖ for n < k", norms, bound=1e-6)],
        erratum_note=(
            "At ρ = 2, B = WWᵀW - WVᵀV, which is W - W for every orthonormal frame W in the span of the teachers."
        ),
    )


def _velocity(w: np.ndarray, degree: int, repulsion: float, attraction: float) -> np.ndarray:
    """The spherical flow of two students and three teachers e_1, e_2, e_3, with factors on the two forces."""
    b = repulsion * (w @ w.T) ** (degree - 1) @ w - attraction * w ** (degree - 1)
    return -(b - np.sum(b * w, axis=1, keepdims=True) * w)


def _gap_along_flow(start: np.ndarray, degree: int, repulsion: float, attraction: float) -> np.ndarray:
    """w_1·v_1 - w_1·v_3 along the flow."""

    def field(_: float, w: Any) -> Any:
        return _velocity(w.reshape(2, 3), degree, repulsion, attraction).ravel()

    found = solve_ivp(field, (0, 1e3), start.ravel(), rtol=1e-10, atol=1e-12)
    return found.y[0] - found.y[2]


def leaves_cone(settings: Settings, progress: Progress) -> Measurement:
    """Student 1 starts closest to v_1, as near to v_3 as `margin`; student 2, closest to v_2, leans towards v_1."""
    margin = settings["margin"]
    first = np.array([1 + margin, 0.6, 1.0])
    second = np.array([0.5, 1.0, 0.1])
    start = np.stack([first / np.linalg.norm(first), second / np.linalg.norm(second)])
    begun, least, last = [], [], []
    for degree in settings["degrees"]:
        for repulsion in progress.over(settings["scalings"]):
            gap = _gap_along_flow(start, degree, repulsion, 1.0)
            begun.append(gap[0])
            least.append(gap.min())
            last.append(gap[-1])
    closest = np.argmax(start, axis=1)
    return Measurement(
        checks=[
            at_least("start: w_1·v_1 - w_1·v_3, student 1 is closest to its own teacher", begun, bound=1e-9),
            at_least("start: teachers that are closest to one student each", len(set(closest.tolist())), bound=2),
            at_most("least w_1·v_1 - w_1·v_3 along the flow, every scaling: it leaves its cone", least, bound=-1e-6),
        ],
        measured={"w_1·v_1 - w_1·v_3 at the end": last},
        notes=(
            "On the cone's boundary w_1·v_1 = w_1·v_3 the two attractions balance; student 2, which leans to v_1, "
            "decides, at any scaling."
        ),
    )
