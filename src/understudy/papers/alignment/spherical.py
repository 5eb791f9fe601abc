"""Claim `spherical`: Theorem 6 for spherically symmetric inputs other than Gaussian ones."""

from collections.abc import Callable
from typing import Any

import numpy as np

from understudy.papers.check import at_least, at_most
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

FREEDOM = 12
"""Degrees of freedom of the heavy-tailed inputs: fourth moments of x z f, which the standard errors need, exist."""


def _directions(rng: np.random.Generator, samples: int, d: int) -> np.ndarray:
    x = rng.normal(size=(samples, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _sphere(rng: np.random.Generator, samples: int, d: int) -> np.ndarray:
    return np.sqrt(d) * _directions(rng, samples, d)


def _ball(rng: np.random.Generator, samples: int, d: int) -> np.ndarray:
    return 3 * rng.uniform(size=(samples, 1)) ** (1 / d) * _directions(rng, samples, d)


def _heavy(rng: np.random.Generator, samples: int, d: int) -> np.ndarray:
    return rng.normal(size=(samples, d)) / np.sqrt(rng.chisquare(FREEDOM, size=(samples, 1)) / FREEDOM)


def _two_shells(rng: np.random.Generator, samples: int, d: int) -> np.ndarray:
    return rng.choice([0.5, 4.0], size=(samples, 1)) * _directions(rng, samples, d)


def _independent(rng: np.random.Generator, samples: int, d: int) -> np.ndarray:
    """Not spherical: independent components, each ±1 with a little noise."""
    return rng.choice([-1.0, 1.0], size=(samples, d)) + 0.1 * rng.normal(size=(samples, d))


Draw = Callable[[np.random.Generator, int, int], np.ndarray]
INPUTS: dict[str, tuple[Draw, Callable[[int], float]]] = {
    "uniform on a sphere": (_sphere, lambda d: float(d)),
    "uniform in a ball": (_ball, lambda d: 9 * d / (d + 2)),
    "Student's t": (_heavy, lambda d: d * FREEDOM / (FREEDOM - 2)),
    "two shells": (_two_shells, lambda d: (0.25 + 16) / 2),
}
"""How inputs are drawn, and E‖x‖² exactly."""


def _sampled(draw: Draw, teacher: Any, student: Any, samples: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Mean of x z_k f_j and its standard errors."""
    terms = []
    for _ in range(-(-samples // 250_000)):
        x = draw(rng, min(samples, 250_000), len(teacher))
        terms.append(x * ((x @ student > 0) * np.maximum(x @ teacher, 0))[:, None])
    means = np.concatenate(terms)
    return means.mean(axis=0), means.std(axis=0) / np.sqrt(len(means))


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.papers.alignment.attraction_field import attraction

    d, samples = settings["dim"], settings["samples"]
    deviations: dict[str, list[float]] = {name: [] for name in (*INPUTS, "independent components")}
    for pair in progress.over(range(settings["pairs"]), "pair"):
        rng = np.random.default_rng([pair, 6])
        teacher: Any = rng.normal(size=d)
        student = (1 - 2 * pair / max(settings["pairs"] - 1, 1)) * teacher + 0.4 * rng.normal(size=d)
        gaussian = attraction(teacher, student)
        for name, (draw, squared) in INPUTS.items():
            mean, error = _sampled(draw, teacher, student, samples, rng)
            deviations[name].append(float(np.max(np.abs(mean - squared(d) / d * gaussian) / error)))
        mean, error = _sampled(_independent, teacher, student, samples, rng)
        deviations["independent components"].append(float(np.max(np.abs(mean - 1.01 * gaussian) / error)))
    spherical = [max(deviations[name]) for name in INPUTS]
    return Measurement(
        checks=[
            at_most(
                "spherical inputs: distance from E‖x‖²/d times the Gaussian value, in errors", spherical, bound=5.0
            ),
            at_least(
                "inputs that are not spherical: the same distance, in standard errors",
                max(deviations["independent components"]),
                bound=10.0,
            ),
        ],
        measured={name: max(values) for name, values in deviations.items()},
    )


CLAIM = Claim(
    paper="alignment",
    id="spherical",
    where="Thm 6",
    statement=(
        "For every spherically symmetric input E[x z_k f_j*] points where it does for Gaussian inputs: it is "
        "proportional to (π - θ) w_j* + sin θ w_k of the unit vectors, with the same factor for every pair."
    ),
    paper_value="∝ (π - θ) w_j* + sin θ w_k",
    measured_by=(
        "Samples of four spherical distributions against the Gaussian closed form times E‖x‖²/d, which is exact; and of "
        "one that is not spherical, which must miss."
    ),
    tolerance="5 standard errors",
    tolerance_reason="6e-7 by chance for each component; about 500 components are compared.",
    quick={"dim": 3, "pairs": 4, "samples": 100_000},
    full={"dim": 5, "pairs": 10, "samples": 2_000_000},
    measure=_measure,
)
