"""Claim `non-correspondence`: weights at a local minimum whose covariances are not at one."""

from typing import TYPE_CHECKING, Any, NamedTuple

from understudy.papers.check import at_most, close, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON = 1e-3
"""The change ε of the paper's weights."""


def _task(penalty: float, targets: tuple[float, float], mean: bool = False) -> Any:
    from understudy.tasks.regularised import Regularised

    weights = None if mean else [1.0, 1.0]
    return Regularised([[1.0], [-1.0]], targets, (2,), penalty=penalty, bias=0.0, weights=weights)


def _weights(squared: float, angle: float) -> tuple[Any, Any]:
    """W_1 = (a_1, a_2)ᵀ, W_2 = (a_1, a_2), on the arc a_1² + a_2² = squared."""
    import numpy as np

    a = np.sqrt(squared) * np.array([np.cos(angle), np.sin(angle)])
    return a[:, None], a[None, :]


class _Arc(NamedTuple):
    """Points on the arc of weights of one task."""

    kinds: list[str]
    norms: list[float]  # of the gradient
    moved: float  # the largest difference of their covariances and outputs
    pair: Any  # the covariances
    output: Any


def _arc(task: Any, penalty: float, angles: list[float]) -> _Arc:
    """Certify points at these angles, and compare their covariances."""
    import numpy as np

    from understudy.points import certify
    from understudy.regularised.covariance import covariances

    points = [_weights(1 - penalty, angle) for angle in angles]
    certificates = [certify(task, point) for point in points]
    found = [covariances(task, point) for point in points]
    same = [np.concatenate([pair[0].ravel(), pair[1].ravel(), output.ravel()]) for (pair,), output in found]
    (pair,), output = found[-1]
    return _Arc(
        [certificate.kind for certificate in certificates],
        [certificate.gradient_norm for certificate in certificates],
        float(np.ptp(np.stack(same), axis=0).max()),
        pair,
        output,
    )


class _Descent(NamedTuple):
    """Ways down from the arc, and how far it lies above the global minimum."""

    slope: Any  # of L^k over covariances
    fall: float  # of L at the end of the arc, per ε²
    excess: Any  # over the global minimum, relative
    curve: list[Any]  # changes of L^k along the way


def _descent(task: Any, arc: _Arc, penalty: float, sign: float) -> _Descent:
    """Go down with a second neuron that is on for the second input only and whose output has this sign."""
    import numpy as np

    from understudy.regularised.covariance import covariance_loss
    from understudy.regularised.frank_wolfe import minimise_globally

    base = covariance_loss(task, [arc.pair], arc.output)
    z = np.array([-1.0, 1.0])  # the second neuron, per ε
    active = np.maximum(z, 0)

    def path(t: float) -> float:
        moved = (arc.pair[0] + t * np.outer(z, z), arc.pair[1] + t * np.outer(active, active))
        return covariance_loss(task, [moved], arc.output + sign * t * active[None, :])

    slope = (path(EPSILON**2) - base) / EPSILON**2
    fall = (_loss_at_the_end(task, penalty, sign) - base) / EPSILON**2
    least = minimise_globally(task, tolerance=1e-6)
    return _Descent(slope, fall, (base - least.value) / base, [path(t) - base for t in np.linspace(0, 0.05, 21)])


def _loss_at_the_end(task: Any, penalty: float, sign: float) -> float:
    """The loss at W^ε: the end of the arc with second weights -ε and ± ε."""
    import numpy as np

    edge = np.sqrt(1 - penalty)
    return float(task.loss((np.array([[edge], [-EPSILON]]), np.array([[edge, sign * EPSILON]]))))


def _norm_with_mean(penalty: float, squared: float) -> float:
    """The gradient norm on the arc of that radius if the loss has the factor 1/N."""
    import numpy as np

    mean = _task(penalty, (1.0, -1.0), mean=True)
    return float(np.linalg.norm(mean.gradient(_weights(squared, 0.7))))


def _printed_rise(penalty: float) -> float:
    """The change of the loss per ε² with Y = (1, 1) and W_2^ε = (√(1-λ), -ε), as printed."""
    task = _task(penalty, (1.0, 1.0))
    return (_loss_at_the_end(task, penalty, -1.0) - float(task.loss(_weights(1 - penalty, 0.0)))) / EPSILON**2


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    arcs, descents, with_mean, printed_norms, printed_rise = [], [], [], [], []
    for penalty in progress.over(settings["penalties"], "λ ="):
        # Consistent version: sum of squares; targets (1, 1) with W_2^ε = (√(1-λ), ε), or (1, -1) with (√(1-λ), -ε).
        for targets, sign in (((1.0, 1.0), 1.0), ((1.0, -1.0), -1.0)):
            task = _task(penalty, targets)
            arcs.append(_arc(task, penalty, settings["angles"]))
            descents.append(_descent(task, arcs[-1], penalty, sign))
        printed_norms.append(_norm_with_mean(penalty, 1 - penalty))
        printed_rise.append(_printed_rise(penalty))
        if 2 * penalty < 1:  # the mean over N belongs to the arc a_1² + a_2² = 1 - Nλ
            with_mean.append(_norm_with_mean(penalty, 1 - 2 * penalty))
    kinds = [kind for arc in arcs for kind in arc.kinds]
    norms = [norm for arc in arcs for norm in arc.norms] + with_mean
    predicted = [2 * p - 2 for p in settings["penalties"] for _ in range(2)]
    excess = [descent.excess for descent in descents]
    checks = [
        equal("weights inside the arc: certified kinds", ["minimum"], sorted(set(kinds))),
        at_most("gradient norm there (and with the mean at a_1² + a_2² = 1 - Nλ)", norms, bound=1e-14),
        at_most("covariances and outputs are the same along the arc", [arc.moved for arc in arcs], bound=1e-14),
        close("slope of L^k along K + t zzᵀ, z = (-1, 1): 2λ - 2", predicted, [d.slope for d in descents], 2e-6),
        close("fall of L along W^ε at the end of the arc, per ε²", predicted, [d.fall for d in descents], 2e-6),
        close(
            "loss above the certified global minimum, relative: (1-λ)²/(1+2λ-λ²)",
            [(1 - p) ** 2 / (1 + 2 * p - p**2) for p in settings["penalties"] for _ in range(2)],
            excess,
            2e-6,
        ),
    ]
    printed_checks = [
        at_most("1/N as printed: gradient norm at a_1² + a_2² = 1 - λ", printed_norms, bound=1e-12),
        at_most("Y = (1, 1), W_2^ε = (√(1-λ), -ε) as printed: change of the loss per ε²", printed_rise, bound=0.0),
    ]
    note = (
        "Consistent version: sum of squares ‖Z_2 - Y‖² without 1/N, X = (1, -1), and either Y = (1, 1) with W_2^ε = "
        "(√(1-λ), ε), Z_2^ε = (1-λ, ε²), or Y = (1, -1) with W_2^ε = (√(1-λ), -ε), Z_2^ε = (1-λ, -ε²). The statement "
        "has Y = (1, -1) and the mean, the proof Y = (1, 1), the sum, W_2^ε with -ε and yet Z_2^ε with +ε². With the "
        f"mean the arc is a_1² + a_2² = 1 - Nλ (λ < 1/N); at 1 - λ the gradient norm is {min(printed_norms):.3f} or "
        f"more. With Y = (1, 1) and -ε the loss rises by at least {min(printed_rise):.2f} ε²."
    )
    measured = {
        "slope of L^k": descents[0].slope,
        "predicted 2λ - 2": predicted[0],
        "certified": f"{kinds.count('minimum')} of {len(kinds)} points minimum",
        "relative excess over the global minimum": [float(e) for e in excess],
    }
    curves = np.array([descent.curve for descent in descents])
    data = {"t": np.linspace(0, 0.05, 21), "curves": curves, "penalties": np.array(settings["penalties"])}
    return Measurement(checks, measured, data=data, printed=printed_checks, erratum_note=note)


def _figure(measurement: Measurement, figure: "Figure") -> None:
    axes = figure.subplots()
    data = measurement.data
    for i, penalty in enumerate(data["penalties"]):
        axes.plot(data["t"], data["curves"][2 * i], color=f"C{i}", label=f"λ = {penalty:g}")
        axes.plot(data["t"], (2 * penalty - 2) * data["t"], color=f"C{i}", ls=":", lw=1)
    axes.axhline(0, color="black", lw=0.8)
    axes.set(
        xlabel="t, along K₁ + t zzᵀ with z = (-1, 1)",
        ylabel="change of the loss",
        title="From a minimum over weights, downhill over covariances",
    )
    axes.legend(title="dotted: slope 2λ - 2")


CLAIM = Claim(
    paper="attraction-repulsion",
    id="non-correspondence",
    where="Remark 4, Prop. 19",
    statement=(
        "A ReLU network of widths (1, 2, 1) without bias on X = (1, -1) has weights that are a local minimum of the "
        "regularised loss while their covariances are not one of L^k."
    ),
    paper_value="local minimum over weights, descent over covariances",
    measured_by=(
        "Certificates on the arc of weights; the loss along a direction of the covariance cone; the certified global "
        "minimum."
    ),
    tolerance="1e-14; 2e-6 on slopes",
    tolerance_reason=(
        "Rounding of a handful of terms of order one; slopes are difference quotients over ε² = 1e-6, whose own error "
        "is ε²."
    ),
    quick={"penalties": [0.1, 0.4], "angles": [0.3, 0.7, 1.2]},
    full={"penalties": [0.01, 0.1, 0.4, 0.8], "angles": [0.1, 0.3, 0.7, 1.2, 1.5]},
    measure=_measure,
    figure=_figure,
)
