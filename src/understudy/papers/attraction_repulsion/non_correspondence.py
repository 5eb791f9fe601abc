"""Claim `non-correspondence`: weights at a local minimum whose covariances are not at one."""

from typing import TYPE_CHECKING, Any

from understudy.papers.check import at_most, close, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _task(penalty: float, targets: tuple[float, float], mean: bool = False) -> Any:
    from understudy.tasks.regularised import Regularised

    weights = None if mean else [1.0, 1.0]
    return Regularised([[1.0], [-1.0]], targets, (2,), penalty=penalty, bias=0.0, weights=weights)


def _weights(squared: float, angle: float) -> tuple[Any, Any]:
    """W_1 = (a_1, a_2)ᵀ, W_2 = (a_1, a_2), on the arc a_1² + a_2² = squared."""
    import numpy as np

    a = np.sqrt(squared) * np.array([np.cos(angle), np.sin(angle)])
    return a[:, None], a[None, :]


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    from understudy.points import certify
    from understudy.regularised.covariance import covariance_loss, covariances
    from understudy.regularised.frank_wolfe import minimise_globally

    kinds, norms, moved, slopes, falls, printed_norms, printed_rise, excess = [], [], [], [], [], [], [], []
    epsilon = 1e-3
    curves = []
    for penalty in progress.over(settings["penalties"], "λ ="):
        # Consistent version: sum of squares; targets (1, 1) with W_2^ε = (√(1-λ), ε), or (1, -1) with (√(1-λ), -ε).
        for targets, sign in (((1.0, 1.0), 1.0), ((1.0, -1.0), -1.0)):
            task = _task(penalty, targets)
            same = []
            for angle in settings["angles"]:
                point = _weights(1 - penalty, angle)
                certificate = certify(task, point)
                kinds.append(certificate.kind)
                norms.append(certificate.gradient_norm)
                (pair,), output = covariances(task, point)
                same.append(np.concatenate([pair[0].ravel(), pair[1].ravel(), output.ravel()]))
            moved.append(float(np.ptp(np.stack(same), axis=0).max()))
            base = covariance_loss(task, [pair], output)

            def path(t: float, task: Any = task, pair: Any = pair, output: Any = output, sign: float = sign) -> float:
                z = np.array([-1.0, 1.0])  # the second neuron, per ε: on for the second input only
                active = np.maximum(z, 0)
                moved_pair = (pair[0] + t * np.outer(z, z), pair[1] + t * np.outer(active, active))
                return covariance_loss(task, [moved_pair], output + sign * t * active[None, :])

            slopes.append((path(epsilon**2) - base) / epsilon**2)
            edge = np.sqrt(1 - penalty)
            along = float(task.loss((np.array([[edge], [-epsilon]]), np.array([[edge, sign * epsilon]]))))
            falls.append((along - base) / epsilon**2)
            least = minimise_globally(task, tolerance=1e-6)
            excess.append((base - least.value) / base)
            curves.append([path(t) - base for t in np.linspace(0, 0.05, 21)])
        # As printed: the mean over N = 2 with the same arc, and W_2^ε = (√(1-λ), -ε) with targets (1, 1).
        mean = _task(penalty, (1.0, -1.0), mean=True)
        printed_norms.append(float(np.linalg.norm(mean.gradient(_weights(1 - penalty, 0.7)))))
        task = _task(penalty, (1.0, 1.0))
        edge = np.sqrt(1 - penalty)
        printed = float(task.loss((np.array([[edge], [-epsilon]]), np.array([[edge, -epsilon]]))))
        printed_rise.append((printed - float(task.loss(_weights(1 - penalty, 0.0)))) / epsilon**2)
        # The mean over N belongs to the arc a_1² + a_2² = 1 - Nλ.
        if 2 * penalty < 1:
            norms.append(float(np.linalg.norm(mean.gradient(_weights(1 - 2 * penalty, 0.7)))))
    predicted = [2 * p - 2 for p in settings["penalties"] for _ in range(2)]
    checks = [
        equal("weights inside the arc: certified kinds", ["minimum"], sorted(set(kinds))),
        at_most("gradient norm there (and with the mean at a_1² + a_2² = 1 - Nλ)", norms, bound=1e-14),
        at_most("covariances and outputs are the same along the arc", moved, bound=1e-14),
        close("slope of L^k along K + t zzᵀ, z = (-1, 1): 2λ - 2", predicted, slopes, 2e-6),
        close("fall of L along W^ε at the end of the arc, per ε²", predicted, falls, 2e-6),
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
        "slope of L^k": slopes[0],
        "predicted 2λ - 2": predicted[0],
        "certified": f"{kinds.count('minimum')} of {len(kinds)} points minimum",
        "relative excess over the global minimum": [float(e) for e in excess],
    }
    data = {"t": np.linspace(0, 0.05, 21), "curves": np.array(curves), "penalties": np.array(settings["penalties"])}
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
