"""Questions about a point, asked one after another. The first answer is the verdict."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from understudy.points.case import Case
from understudy.points.copies import cube_of_copies, distance_to_other_signs
from understudy.points.dead_neurons import WayDown, way_down
from understudy.points.higher_order import HigherOrder, examine
from understudy.points.kinks import one_sided_descent
from understudy.points.surroundings import Surroundings
from understudy.points.verdict import Kind
from understudy.points.zero_loss import at_lower_bound, flat_dimension

_SLOPE = 8.0
"""How many times its rounding a slope along a zero mode must be to show that no critical point is near."""


@dataclass(frozen=True)
class Answer:
    """A kind, the reason in words, and further evidence; `flat`: dimension of the flat set, if known."""

    kind: Kind
    words: tuple[str, ...]
    flat: int | None = None
    directions: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    higher_order: HigherOrder | None = None
    way_down: WayDown | None = None
    drop: float | None = None


def judge(case: Case) -> Answer:
    """The first answer to the questions below."""
    for question in QUESTIONS:
        answer = question(case)
        if answer is not None:
            return answer
    raise AssertionError("The last question always has an answer.")


def runs_away(case: Case) -> Answer | None:
    """A run that goes to infinity, as its trajectory has shown."""
    return Answer("diverging", (case.diverging,)) if case.diverging else None


def is_lowest(case: Case) -> Answer | None:
    """The loss equals a global lower bound, to rounding: a global minimum, whatever the derivatives are."""
    bound = at_lower_bound(case.around)
    if bound is None or case.inertia[0]:
        return None
    words = f"the loss is at its lower bound, to rounding ({bound * case.around.unit:.0e}): a global minimum"
    return Answer("minimum", (words,), flat=flat_dimension(case, bound), drop=bound * case.around.unit)


def still_moves(case: Case) -> Answer | None:
    """The gradient is not small."""
    norm = float(np.linalg.norm(case.around.gradient))
    if norm <= case.limit:
        return None
    unit = case.around.unit
    return Answer("unconverged", (f"gradient norm {norm * unit:.2e} is above {case.limit * unit:.0e}",))


def sits_on_kink(case: Case) -> Answer | None:
    """The loss has a kink here, known to the task or seen in the gradient. Is there a one-sided way down?"""
    known = case.around.task.kinks(case.around.vector)
    if known or case.around.kinked:
        return on_kink(case.around, known)
    return None


def on_kink(around: Surroundings, known: list[str]) -> Answer:
    """The answer at a kink: a way down to one side, or none found."""
    words = known or ["the gradient jumps within rounding of the point: the loss has a kink here"]
    falls = one_sided_descent(around)
    if falls is not None:
        words = [
            f"{w}; it falls along a one-sided direction, with slope {falls.slope * around.unit:.1e}" for w in words
        ]
        return Answer("unconverged", tuple(words), directions=falls.direction[None])
    return Answer("undecided", tuple(f"{w}; no verdict from derivatives" for w in words))


def has_no_critical_point(case: Case) -> Answer | None:
    """Newton's method leads away, or there is a slope along a direction without curvature."""
    if case.astray:
        return Answer("unconverged", (f"everything is small, but no critical point is near: {case.astray}",))
    reach = 0.1 * (1 + float(np.linalg.norm(case.around.vector / case.around.lengths)))
    if case.spectrum.distance > reach:
        length = f"{case.spectrum.distance:.2g}"
        words = f"everything is small: Newton's step is {length} long, so that no critical point is near"
        return Answer("unconverged", (words,))
    zero = case.spectrum.zero
    if not case.unexplained or not zero.any():
        return None
    slopes, noise = case.slopes, case.noise_along
    worst = int(np.argmax(slopes / np.maximum(noise, 1e-300)))
    if slopes[worst] <= _SLOPE * noise[worst] or case.spectrum.unsure:
        return None
    share = slopes[worst] / max(noise[worst], 1e-300)
    words = (
        f"a slope of {slopes[worst] * case.around.unit:.1e} ({share:.0e} times its rounding) along a direction without "
        "curvature: no critical point is near"
    )
    return Answer("unconverged", (words,))


def curves_down(case: Case) -> Answer | None:
    """There is a negative eigenvalue."""
    index = case.inertia[0]
    if not index:
        return None
    unit, found = case.around.unit, case.spectrum
    words = f"{index} eigenvalues below -{found.threshold * unit:.1e}, the least {case.values[0] * unit:.3e}"
    return Answer("strict saddle", (words,), directions=found.vectors[:, found.values < -found.threshold].T)


def curves_up(case: Case) -> Answer | None:
    """All zero eigenvalues belong to directions that keep the function."""
    if case.unexplained:
        return None
    above = case.values[case.values > case.spectrum.threshold] * case.around.unit
    least = float(above[0]) if len(above) else float("nan")
    threshold = case.spectrum.threshold * case.around.unit
    return Answer("minimum", (f"least eigenvalue off the zero modes {least:.3e} > {threshold:.1e}",))


def looks_further(case: Case) -> Answer:
    """There are unexplained zero modes: examine dead neurons, then the loss along the zero modes at many scales."""
    around = case.around
    down = way_down(around, case.noise)
    if down is not None and down.clear:
        return Answer("non-strict saddle", (down.describe(),), way_down=down)
    modes = case.unexplained_modes
    if down is None and not case.outside and (cube := cube_of_copies(around, modes)) is not None:
        told = f"{case.unexplained} zero modes without a symmetry behind them; {cube.describe()}"
        if cube.rises:
            return Answer("minimum", (told,), flat=case.explained)
        return Answer("non-strict saddle", (told,), directions=modes[:, :1].T)
    symmetric = [f.tangents for f in case.families if f.name == "symmetry"]
    skip = np.concatenate(symmetric) if symmetric else np.zeros((0, len(around.vector)))
    largest = max(1.0, float(np.linalg.norm(around.vector / around.lengths)))
    largest = min(largest, around.task.kink_distance(around.vector) / (2 * float(around.lengths.max())))
    largest = min(largest, distance_to_other_signs(around) / 2)
    higher = examine(around, case.spectrum.values, case.spectrum.vectors, case.spectrum.zero, skip, largest)
    words: tuple[str, ...] = (f"{case.unexplained} zero modes without a symmetry behind them; {higher.describe()}",)
    kind: Kind = "minimum"
    direction = np.zeros((0, 0))
    if higher.finding == "descends":
        kind, direction = "non-strict saddle", higher.direction[None]
    elif down is not None:
        kind, words = "undecided", (*words, down.describe())
    elif higher.finding == "undecided":
        kind = "undecided"
    elif case.spectrum.unsure and higher.finding != "rises":
        kind = "undecided"
        words = (
            *words,
            f"{case.spectrum.unsure} eigenvalues change by more than a quarter of themselves within Newton's step, "
            "and the loss around is level to rounding: too far from a critical point to tell",
        )
    flat = max(case.explained, higher.flat + len(skip)) if kind == "minimum" else None
    return Answer(kind, words, flat, direction, higher, down, higher.drop)


QUESTIONS: tuple[Callable[[Case], Answer | None], ...] = (
    runs_away,
    is_lowest,
    still_moves,
    sits_on_kink,
    has_no_critical_point,
    curves_down,
    curves_up,
    looks_further,
)
