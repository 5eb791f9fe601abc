"""Claim `saad-solla`: committee machines with outgoing weights fixed to one."""

import math
from typing import Any, NamedTuple

import numpy as np

from understudy.papers.check import Check, at_least, at_most, close
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _fixed_points(settings: Settings, progress: Progress) -> list[Check]:
    """The symmetric fixed points of erf (Eq. 22) and of ReLU (Eq. 24): gradients, and losses against one neuron's."""
    import understudy as us
    from understudy.theory import one_neuron

    gradients, losses, wanted, relu, relu_gradients = [], [], [], [], []
    for k in progress.over(settings["teachers"], "k ="):
        task = us.Population(us.Teacher.orthonormal(k), width=k, outgoing=1.0)
        point = us.TwoLayer(np.full((k, k), 1 / math.sqrt(k * (2 * k - 1))), np.ones(k))
        gradients.append(float(np.linalg.norm(task.gradient(point))))
        losses.append(float(task.loss(point)))
        wanted.append(one_neuron("erf", k).loss)
        # ReLU: k students x Σ_j v_j with the x of Eq. 24.
        x = (math.sqrt(k - 1) - math.acos(1 / math.sqrt(k)) + math.pi) / (math.pi * k)
        kinked = us.Population(us.Teacher.orthonormal(k, activation="relu"), width=k, outgoing=1.0)
        students = us.TwoLayer(np.full((k, k), x), np.ones(k))
        relu_gradients.append(float(np.linalg.norm(kinked.gradient(students))))
        relu.append(abs(float(kinked.loss(students)) - one_neuron("relu", k).loss))
    return [
        at_most("erf: gradient at Q = C = 1/(2k-1), R = 1/√(k(2k-1)) (Eq. 22)", gradients, bound=1e-12),
        close("erf: its loss is that of one neuron with a free outgoing weight", wanted, losses, 1e-12),
        at_most("ReLU: gradient at Eq. 24", relu_gradients, bound=1e-10),
        at_most("ReLU: its loss minus that of one neuron", relu, bound=1e-10),
    ]


class _Committees(NamedTuple):
    """Committees against teachers with outgoing weights a_t: the weights and the losses, by weight."""

    weight: Any
    loss: Any  # with the norm 1/√(2k-1)
    right: Any  # the formula with correlation 1/√k
    wrong: Any  # the formula with correlation 1/√(k-1)
    adapted: Any  # with the norm that makes it least
    free: Any  # one neuron with a free outgoing weight


def _committee(k: int, weight: float) -> list[float]:
    """One entry of each field of `_Committees`."""
    from scipy.optimize import minimize_scalar

    import understudy as us
    from understudy.gaussian import interaction
    from understudy.theory import one_neuron

    r = 1 / math.sqrt(2 * k - 1)
    own = float(interaction("erf", r, r, 1.0))
    task = us.Population(us.Teacher.orthonormal(k, outgoing=weight), width=k, outgoing=1.0)
    there = float(task.loss(us.TwoLayer(np.full((k, k), r / math.sqrt(k)), np.ones(k))))
    right, wrong = (
        k**2 * own - 2 * k**2 * weight * float(interaction("erf", r, 1.0, u)) + weight**2 * k / 3
        for u in (1 / math.sqrt(k), 1 / math.sqrt(k - 1))
    )
    best = minimize_scalar(
        lambda s: (
            k**2 * float(interaction("erf", s, s, 1.0))
            - 2 * k**2 * weight * float(interaction("erf", s, 1.0, 1 / math.sqrt(k)))
        ),
        bounds=(1e-3, 60.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return [weight, there, right, wrong, float(best.fun) + weight**2 * k / 3, weight**2 * one_neuron("erf", k).loss]


def _checks_of_committees(found: _Committees, k: int, tolerance: float) -> list[Check]:
    """The formula of their loss, that they are worse than one free neuron, and the limit of large weights."""
    above = found.adapted - found.free
    away = np.abs(found.weight - 1) > 0.1
    large = np.argmax(found.weight)
    return [
        close("committee at a_t ≠ 1: formula with correlation 1/√k", found.loss, found.right, 1e-11, relative=True),
        at_least("committee with its norm adapted minus a_t² L*: not negative", above, bound=-1e-9),
        at_least("and positive for a_t ≠ 1, relative to a_t² L*", (above / found.free)[away], bound=1e-4),
        close(
            "loss/(a_t² k) for the largest a_t, towards 1/3",
            1 / 3,
            found.adapted[large] / (found.weight[large] ** 2 * k),
            tolerance,
        ),
    ]


def _measure(settings: Settings, progress: Progress) -> Measurement:
    checks = _fixed_points(settings, progress)
    k = settings["example"]
    found = _Committees(*np.array([_committee(k, weight) for weight in settings["weights"]]).T)
    checks += _checks_of_committees(found, k, settings["large_tolerance"])
    printed = [
        close("committee at a_t ≠ 1: formula with correlation 1/√(k-1), as printed", found.loss, found.wrong, 1e-6)
    ]
    note = (
        "The correlation of the symmetric student with each teacher is 1/√k; the printed 1/√(k-1) gives "
        f"{found.wrong[0]:.4f} instead of {found.loss[0]:.4f} for k = {k}, a_t = {found.weight[0]:g}. Moreover the "
        "printed norm 1/√(2k-1) is a fixed point for a_t = 1 only; with the norm adapted the loss is lower, but still "
        "above a_t² L*(k), and its leading coefficient k/3 for a_t → ∞ stands."
    )
    measured = {
        "k": k,
        "a_t": found.weight.tolist(),
        "committee, norm 1/√(2k-1)": found.loss.tolist(),
        "committee, norm adapted": found.adapted.tolist(),
        "free outgoing weight": found.free.tolist(),
    }
    return Measurement(checks, measured, printed=printed, erratum_note=note)


CLAIM = Claim(
    paper="copy-average",
    id="saad-solla",
    where="App. B, Eq. 21-24",
    statement=(
        "The symmetric fixed points of committee machines (all outgoing weights one) with erf and ReLU are one-neuron "
        "optima with the same loss; if the teacher's outgoing weights differ from one, the committee is worse."
    ),
    paper_value="Q = C = 1/(2k-1), R = 1/√(k(2k-1)); x = (√(k-1) - arccos(1/√k) + π)/(πk); loss O(a_t) + a_t² k/3",
    measured_by="Gradients and losses of the population task with fixed outgoing weights; minimisation over the norm.",
    tolerance=1e-12,
    tolerance_reason="Closed forms on both sides.",
    quick={"teachers": [2, 3, 5], "example": 5, "weights": [0.5, 1.0, 2.0, 4.0, 200.0], "large_tolerance": 0.02},
    full={
        "teachers": [2, 3, 4, 5, 8, 12, 20],
        "example": 10,
        "weights": [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 10.0, 500.0],
        "large_tolerance": 0.02,
    },
    measure=_measure,
)
