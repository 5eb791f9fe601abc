"""Claim `explosion`: near representations that no weights can produce, the loss grows without bound (App. B.1)."""

from typing import Any

import numpy as np

from understudy.papers.check import at_least, between
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _near(rng: np.random.Generator, epsilon: float, samples: int, widths: tuple[int, int]) -> tuple[Any, Any, Any]:
    """Z_2, v and feasible layers within ε of an infeasible pair (Z_1, Z_2): v ∈ ker σ(Z_1), Z_2 v ≠ 0.

    One neuron of Z_1 is dead. Moved by ε, it reads out the direction v ≥ 0 and makes Z_2 reachable again.
    """
    first, second = widths
    v = np.abs(rng.normal(size=samples)) * (rng.uniform(size=samples) < 0.6)
    v[0] = 1.0
    v /= np.linalg.norm(v)
    others = rng.normal(size=(first - 1, samples))
    active = np.maximum(others, 0)
    active[:, v > 0] = 0  # so that v is in the kernel of σ(Z_1)
    z = rng.normal(size=(second, samples))
    rows = np.concatenate([active, v[None]])
    z = z @ np.linalg.pinv(rows) @ rows  # what the moved layer can produce
    return z, v, np.concatenate([active, epsilon * v[None]])


def _norm(z: np.ndarray, activated: np.ndarray) -> float:
    """‖Z_2 (Z_1^σ)⁺‖²: what the regulariser pays for the second layer."""
    return float(np.sum((z @ np.linalg.pinv(activated)) ** 2))


def _inserted(z: np.ndarray, v: np.ndarray, activated: np.ndarray) -> float:
    """‖Z_2 vvᵀ (Z_1^σ)⁺‖², which the printed proof puts below `_norm`."""
    return float(np.sum(np.outer(z @ v, v @ np.linalg.pinv(activated)) ** 2))


def _measure(settings: Settings, progress: Progress) -> Measurement:
    epsilons = np.geomspace(1e-1, 1e-5, 5)
    margins, exponents = [], []
    for seed in progress.over(range(settings["problems"]), "problem"):
        paid = []
        for epsilon in epsilons:
            z, v, activated = _near(np.random.default_rng([seed, 11]), float(epsilon), 8, (4, 3))
            paid.append(_norm(z, activated))
            margins.append(paid[-1] / (np.linalg.norm(z @ v) / epsilon) ** 2)
        exponents.append(float(np.log(paid[-1] / paid[-2]) / np.log(epsilons[-1] / epsilons[-2])))
    general = []
    for seed in range(settings["problems"]):
        rng = np.random.default_rng([seed, 12])
        rows, weights = rng.normal(size=(4, 8)), rng.normal(size=(3, 4))
        z, v = weights @ rows, rng.normal(size=8)
        v /= np.linalg.norm(v)
        general.append(_norm(z, rows) * np.sum((rows @ v) ** 2) / np.sum((z @ v) ** 2))
    # Z_1^σ = diag(ε, ε²) and Z_2 = (1, 0): feasible, and within ε of layers with v = (1, 1)/√2 in their kernel.
    small, unit = 1e-2, np.full(2, np.sqrt(0.5))
    rows, z = np.diag([small, small**2]), np.array([[1.0, 0.0]])
    inserted = _norm(z, rows) / _inserted(z, unit, rows)
    z, v, activated = _near(np.random.default_rng([0, 11]), 0.0, 8, (4, 3))
    at_point = _norm(z, activated) * 1e-5**2 / np.sum((z @ v) ** 2)
    return Measurement(
        checks=[
            at_least("feasible layers near an infeasible pair: ‖Z_2(Z_1^σ)⁺‖² ε²/‖Z_2v‖²", margins, bound=1 - 1e-9),
            between("exponent of ε in the loss", exponents, low=-2.01, high=-1.99),
            at_least("feasible layers and any v: ‖Z_2(Z_1^σ)⁺‖²‖Z_1^σ v‖²/‖Z_2v‖²", general, bound=1 - 1e-9),
        ],
        measured={
            "exponent of ε": float(np.mean(exponents)),
            "‖Z_2(Z_1^σ)⁺‖²/‖Z_2vvᵀ(Z_1^σ)⁺‖² for Z_1^σ = diag(ε, ε²), Z_2 = (1, 0), ε = 0.01": inserted,
        },
        printed=[
            at_least("‖Z_2(Z_1^σ)⁺‖² over ‖Z_2vvᵀ(Z_1^σ)⁺‖², a feasible example", inserted, bound=1.0),
            at_least("the bound at the infeasible pair itself, ε = 1e-5", at_point, bound=1.0),
        ],
        erratum_note=(
            "For feasible layers Z_2 = Z_2(Z_1^σ)⁺Z_1^σ, so ‖Z_2v‖ ≤ ‖Z_2(Z_1^σ)⁺‖·‖Z_1^σ v‖ ≤ ‖Z_2(Z_1^σ)⁺‖ε, and the "
            "loss grows like ε⁻². The printed proof inserts vvᵀ between the factors, which can raise the norm, and "
            "speaks of any layers within ε: at the infeasible pair itself the formula is finite. The conclusion for "
            "gradient flow, which stays feasible, stands."
        ),
    )


CLAIM = Claim(
    paper="attraction-repulsion",
    id="explosion",
    where="App. B.1, Sec. 3.1",
    statement=(
        "Within ε of representations whose constraints Im Z_{ℓ+1}ᵀ ⊆ Im (Z_ℓ^σ)ᵀ fail, ‖Z_{ℓ+1}(Z_ℓ^σ)⁺‖² is at least "
        "(‖Z_{ℓ+1}v‖² - ε)/ε: the loss explodes, so gradient flow never approaches them."
    ),
    paper_value="(‖Z_{ℓ+1}v‖² - ε)/ε",
    measured_by="Random ReLU layers that approach an infeasible pair, and random feasible layers, with pseudo-inverses.",
    tolerance="1e-9 relative",
    tolerance_reason="Rounding of pseudo-inverses with condition numbers up to 1e5.",
    quick={"problems": 20},
    full={"problems": 500},
    measure=_measure,
)
