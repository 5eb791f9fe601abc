"""Claim `attraction`: E[x z_k f_j*] in closed form, and the factor ‖w_k‖ settled."""

from __future__ import annotations

from typing import Any

from understudy.papers.check import at_least, at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

BATCH = 250_000


def _sampled(teacher: Any, student: Any, samples: int, rng: Any) -> tuple[Any, Any]:
    """Mean of x z_k f_j over standard normal samples, and its standard errors."""
    import numpy as np

    total, squares, done = np.zeros(len(teacher)), np.zeros(len(teacher)), 0
    while done < samples:
        x = rng.normal(size=(min(BATCH, samples - done), len(teacher)))
        terms = x * ((x @ student > 0) * np.maximum(x @ teacher, 0))[:, None]
        total += terms.sum(axis=0)
        squares += (terms**2).sum(axis=0)
        done += len(x)
    mean = total / samples
    return mean, np.sqrt((squares / samples - mean**2) / samples)


def _differentiated(teacher: Any, student: Any) -> Any:
    """The same vector from the exact population loss L = E[(f_k - f_j)²]: ½∇L = E[x z_k (f_k - f_j)], and E[x z_k
    f_k] = w_k/2.
    """
    import numpy as np

    import understudy as us

    task = us.Population(us.Teacher(teacher[None], np.ones(1), "relu"), width=1, outgoing=1.0)
    return student / 2 - np.asarray(task.gradient(us.TwoLayer(student[None], np.ones(1)))) / 2


def _printed(teacher: Any, student: Any) -> Any:
    """(‖w_j‖‖w_k‖/2) [(π - θ) w_j + sin θ w_k], to be proportional to the expectation."""
    import numpy as np

    from understudy.papers.alignment.attraction_field import angle

    theta = angle(teacher, student)
    return np.linalg.norm(teacher) * np.linalg.norm(student) / 2 * ((np.pi - theta) * teacher + np.sin(theta) * student)


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    from understudy.papers.alignment.attraction_field import attraction

    rng = np.random.default_rng(0)
    d = settings["dim"]
    errors, doubled, gradients, ratios, between, shown = [], [], [], [], [], []
    for turn in progress.over(range(settings["pairs"]), "pair"):
        teacher: Any = rng.normal(size=d) * rng.uniform(0.5, 2)
        # From nearly the same to nearly the opposite direction.
        student = (1 - 2 * turn / max(settings["pairs"] - 1, 1)) * teacher + 0.4 * rng.normal(size=d)
        exact = attraction(teacher, student)
        mean, deviation = _sampled(teacher, student, settings["samples"], rng)
        errors.append(np.max(np.abs(mean - exact) / deviation))
        gradients.append(np.max(np.abs(np.asarray(_differentiated(teacher, student)) - exact)))
        coefficients = np.linalg.lstsq(np.stack([teacher, student], axis=1), exact, rcond=None)[0]
        between.append(coefficients.min())
        long, other = _sampled(teacher, 2 * student, settings["samples"], rng)
        doubled.append(np.max(np.abs(long - mean) / np.hypot(deviation, other)))
        constants = [(_printed(teacher, w) @ v) / (v @ v) for w, v in ((student, mean), (2 * student, long))]
        ratios.append(constants[1] / constants[0])
        shown.append([np.linalg.norm(long) / np.linalg.norm(mean), ratios[-1]])
    scaled = np.array(shown)
    checks = [
        at_most("sampled against the closed form, standard errors", errors, bound=5.0),
        at_most("gradient of the population loss against the closed form", gradients, bound=1e-10),
        at_least("coefficients of w_j and w_k: the vector lies between them", between, bound=0.0),
        at_most("a student of twice the length: change of the expectation, standard errors", doubled, bound=5.0),
    ]
    printed = [
        at_most("printed formula over expectation, change when w_k doubles", np.abs(np.array(ratios) - 1), bound=0.5)
    ]
    measured = {
        "largest deviation in standard errors": float(max(errors)),
        "expectation when w_k doubles": f"times {scaled[:, 0].min():.3f} … {scaled[:, 0].max():.3f}",
        "printed formula when w_k doubles": f"times {scaled[:, 1].min():.3f} … {scaled[:, 1].max():.3f}",
    }
    return Measurement(
        checks,
        measured,
        printed=printed,
        erratum_note=(
            "E[x z_k f_j*] = (‖w_j*‖/2π)[(π - θ) w̄_j* + sin θ w̄_k] with unit vectors w̄: a gate does not depend on "
            "the length of its weights. The printed factor ‖w_k‖ (and w_k itself in the bracket) make it grow with "
            "‖w_k‖; the proof assumes homogeneity in ‖w_k‖, where the degree is 0. Eq. 58-59 also lose a sign in θ'' = "
            "2θ' + π (cos 2θ' = -cos θ''): it is I_1 w_j* - I_0/2 + I_2/2, which gives the + sin θ that the theorem "
            "states."
        ),
    )


CLAIM = Claim(
    paper="alignment",
    id="attraction",
    where="Thm 6, App. 9.14",
    statement=(
        "For spherically symmetric inputs E[x z_k f_j*] ∝ (‖w_j*‖‖w_k‖/2)[(π - θ) w_j* + sin θ w_k]: it lies between "
        "the two weights and is large when they are close."
    ),
    paper_value="∝ ‖w_j*‖‖w_k‖/2 [(π - θ) w_j* + sin θ w_k]",
    measured_by="Sampling with standard errors; gradients of the exact population loss; students of doubled length.",
    tolerance="5 standard errors; 1e-10",
    tolerance_reason="Five standard errors of the mean: 6e-7 by chance; rounding of the loss's derivative.",
    quick={"dim": 4, "pairs": 8, "samples": 400_000},
    full={"dim": 6, "pairs": 12, "samples": 10_000_000},
    measure=_measure,
)
