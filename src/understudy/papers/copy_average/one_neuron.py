"""Claim `one-neuron`: all critical points of one student, their closed forms, and how the error grows with k."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import Check, at_most, between, close, equal, holds
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMOOTH = ("softplus", "sigmoid", "tanh:0.5")
ALL = ("erf", "relu", *SMOOTH)
LABELS = {"tanh:0.5": "tanh(x/2)", "relu": "ReLU"}


def _arccos_kernel(u: float) -> float:
    return (math.sqrt(max(1 - u * u, 0.0)) + (math.pi - math.acos(u)) * u) / (2 * math.pi)


def _checks_of_erf(ks: list[int]) -> list[Check]:
    """The search against the closed forms of erf."""
    from understudy.theory.one_neuron import one_neuron

    searched = [one_neuron("erf", k, closed_form=False) for k in ks]
    norms = [1 / math.sqrt(2 * k - 1) for k in ks]
    losses = [2 / math.pi * (k * math.pi / 6 - k**2 * math.asin(1 / (2 * k))) for k in ks]
    mirrored = [abs(p.critical_points[0].outgoing + p.critical_points[1].outgoing) for p in searched]
    return [
        close("erf: norm, by search", norms, [p.norm for p in searched], 1e-12, relative=True),
        close("erf: outgoing weight, by search", ks, [p.outgoing for p in searched], 1e-12, relative=True),
        close("erf: loss (Eq. 16)", losses, [p.loss for p in searched], 1e-12),
        equal("erf: number of critical points", [2], sorted({len(p.critical_points) for p in searched})),
        at_most("erf: u = -1/√k is the mirror image", mirrored, bound=1e-9),
    ]


def _checks_of_relu(ks: list[int]) -> list[Check]:
    """The closed forms of ReLU, and its saddle at negative correlation."""
    from understudy.theory.one_neuron import one_neuron

    h = {k: _arccos_kernel(1 / math.sqrt(k)) for k in ks}
    relu = [one_neuron("relu", k) for k in ks]
    wanted = [k**2 * (1 / (2 * math.pi) - 2 * h[k] ** 2) + k * (0.5 - 1 / (2 * math.pi)) for k in ks]
    scale = np.maximum(np.array(wanted), 1.0)
    saddles = [{q.kind for q in p.critical_points if q.correlation < 0} for p in relu[1:]]
    return [
        close("relu: r·a (Eq. 128)", [k * h[k] / 0.5 for k in ks], [p.invariant for p in relu], 1e-12, relative=True),
        close("relu: loss (Eq. 129)", np.array(wanted) / scale, np.array([p.loss for p in relu]) / scale, 1e-12),
        holds("relu: u = -1/√k is a saddle for k ≥ 2", all(s == {"saddle"} for s in saddles), f"k = 2 … {ks[-1]}"),
    ]


def _of_smooth(name: str, ks: list[int], minimised: list[int]) -> tuple[list[float], dict[str, list[int]]]:
    """Gaps to the independent minimisation for those k, and the numbers of points on either side that occur."""
    from understudy.theory.one_neuron import critical_points, one_neuron

    gaps = []
    for k in minimised:
        best = one_neuron(name, k)
        norm, outgoing, loss = _minimise(name, k)
        gaps.append(max(abs(best.norm / norm - 1), abs(best.outgoing / outgoing - 1), abs(best.loss - loss)))
    found = [critical_points(name, k) for k in ks]
    return gaps, {
        "u > 0": sorted({sum(p.correlation > 0 for p in ps) for ps in found}),
        "u < 0": sorted({sum(p.correlation < 0 for p in ps) for ps in found}),
    }


def _checks_of_smooth(gaps: list[float], counts: dict[str, dict[str, list[int]]]) -> list[Check]:
    """The search for softplus, sigmoid and tanh, and how many points it finds."""
    return [
        at_most("softplus, sigmoid, tanh: search against an independent minimisation", gaps, bound=1e-10),
        equal("softplus: points at u < 0", [0], counts["softplus"]["u < 0"]),
        equal("one point at u > 0 for each", [[1]] * 3, [counts[name]["u > 0"] for name in SMOOTH]),
        equal("tanh: one mirror image at u < 0", [1], counts["tanh:0.5"]["u < 0"]),
    ]


def _largest_slopes_of_gelu(settings: Settings) -> dict[int, float]:
    """The largest r·f(r, 1/√k) of gelu over norms, by k."""
    from understudy.theory.one_neuron import radial_slope

    wide = np.geomspace(0.02, settings["gelu_norm"], settings["gelu_points"])
    return {k: float(np.max(radial_slope("gelu", wide, 1 / math.sqrt(k)) * wide)) for k in settings["gelu_teachers"]}


def _checks_of_gelu(largest: dict[int, float]) -> list[Check]:
    """That gelu has no critical point for these k."""
    from understudy.theory.one_neuron import critical_points

    return [
        at_most("gelu: largest r·f(r, 1/√k), k ≥ 2", list(largest.values()), bound=-1e-6),
        equal("gelu: critical points, k ≥ 2", 0, sum(len(critical_points("gelu", k)) for k in largest)),
    ]


def _checks_of_growth(linear: float, quadratic: float) -> list[Check]:
    """How the error grows with k, from L*/k of erf and L*/k² of ReLU for k = 10⁴."""
    limit = 1 / (2 * math.pi) - 2 * (1 / (2 * math.pi)) ** 2
    return [
        close("erf: L*/k for k = 10⁴ against 1/3 - 1/π", 1 / 3 - 1 / math.pi, linear, 1e-5),
        between("relu: L*/k² for k = 10⁴ near h(0) - h(0)²/h(1)", quadratic, low=limit - 0.01, high=limit),
    ]


def _curves(ks: list[int]) -> dict[str, Any]:
    """What the figure shows: norms, outgoing weights and losses against k, and f against the norm."""
    from understudy.theory.one_neuron import one_neuron, radial_slope

    data: dict[str, Any] = {"k": np.array(ks)}
    for name in ALL:
        points = [one_neuron(name, k) for k in ks]
        for what in ("norm", "outgoing", "loss"):
            data[f"{name}|{what}"] = np.array([getattr(p, what) for p in points])
    correlations = np.array([0.2, 0.4, 0.6, 0.8, 1.0])
    norms = np.geomspace(0.05, 2.0, 120)
    for name in ("erf", "softplus", "sigmoid", "tanh:0.5", "gelu"):
        data[f"{name}|f"] = np.stack([radial_slope(name, norms, u) for u in correlations])
    return data | {"f_norms": norms, "f_correlations": correlations}


def _measure(settings: Settings, progress: Progress) -> Measurement:
    from understudy.theory.one_neuron import one_neuron

    ks = list(range(1, settings["largest"] + 1))
    progress(0.0, "erf")
    checks = _checks_of_erf(ks)
    progress(0.1, "relu")
    checks += _checks_of_relu(ks)
    gaps, counts = [], {}
    for name in progress.over(SMOOTH, "independent minimisation,"):
        found, counts[name] = _of_smooth(name, ks, settings["minimised"])
        gaps += found
    checks += _checks_of_smooth(gaps, counts)
    progress(0.8, "gelu")
    gelu = _largest_slopes_of_gelu(settings)
    checks += _checks_of_gelu(gelu)
    many = 10_000
    linear, quadratic = one_neuron("erf", many).loss / many, one_neuron("relu", many).loss / many**2
    checks += _checks_of_growth(linear, quadratic)
    measured = {
        "teachers": f"1 … {ks[-1]}",
        "largest gap to an independent minimisation": max(gaps),
        "L*(k)/k at k = 10⁴ (erf)": float(linear),
        "L*(k)/k² at k = 10⁴ (ReLU)": float(quadratic),
        "points with u > 0, u < 0": counts,
        "gelu: largest r·f": gelu,
    }
    notes = (
        "Norms from 1e-4 to 2/steepness were searched (erf: and beyond by the closed form; gelu: to "
        f"{settings['gelu_norm']:g}). For gelu f has zeros at correlations above 0.802 (norms above 1), which no k ≥ 2 "
        "has; for "
        "k = 1 the copy itself is one. As r grows, gelu becomes ReLU and the loss falls without reaching a minimum."
    )
    return Measurement(checks, measured, data=_curves(ks), notes=notes)


def _minimise(name: str, k: int) -> tuple[float, float, float]:
    """The two-dimensional loss (Eq. 115) minimised from scratch: interactions by quadrature, Nelder-Mead, then Newton.

    Nothing is shared with the search: no fixed-point equation, no Hermite series, another quadrature.
    """
    from scipy.optimize import minimize

    from understudy import activations
    from understudy.gaussian import interaction
    from understudy.gaussian.hermite import derivatives

    sigma = activations.get(name)
    u = 1 / math.sqrt(k)
    # Gauss-Hermite in x and in the part of y orthogonal to x; poles are at distance π/r ≥ π, so 120 nodes are plenty.
    z, weight = np.polynomial.hermite_e.hermegauss(120)
    weight = weight / math.sqrt(2 * math.pi)
    teacher = derivatives(sigma, u * z[:, None] + math.sqrt(1 - u * u) * z[None, :], 1)[0] @ weight  # E[σ(y) | x]
    constant = k * float(interaction(name, 1.0, 1.0, 1.0)) + k * (k - 1) * float(interaction(name, 1.0, 1.0, 0.0))

    def terms(r: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s, s1, s2 = derivatives(sigma, r * z, 3)
        return s, s1 * z, s2 * z**2

    def loss(p: np.ndarray) -> float:
        s, _, _ = terms(p[0])
        return float(p[1] ** 2 * (weight @ s**2) - 2 * k * p[1] * (weight @ (s * teacher)) + constant)

    start = minimize(
        loss, np.array([0.8 * u, float(k)]), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-14}
    ).x
    r, a = start
    for _ in range(20):
        s, d, dd = terms(r)
        own, slope, bend = weight @ s**2, weight @ (s * d), weight @ (d * d + s * dd)
        cross, cross1, cross2 = weight @ (s * teacher), weight @ (d * teacher), weight @ (dd * teacher)
        gradient = np.array([2 * a * a * slope - 2 * k * a * cross1, 2 * a * own - 2 * k * cross])
        mixed = 4 * a * slope - 2 * k * cross1
        hessian = np.array([[2 * a * a * bend - 2 * k * a * cross2, mixed], [mixed, 2 * own]])
        step = np.linalg.solve(hessian, gradient)
        r, a = r - step[0], a - step[1]
    return float(r), float(a), loss(np.array([r, a]))


def _figure(measurement: Measurement, figure: "Figure") -> None:
    figure.set_size_inches(11.0, 9.0)
    axes = figure.subplots(3, 3)
    data, k = measurement.data, measurement.data["k"]
    few, several = k <= 10, k >= 2  # one neuron copies one teacher without error
    for i, name in enumerate(ALL):
        label, colour = LABELS.get(name, name), f"C{i}"
        axes[0, 0].plot(k[several], data[f"{name}|loss"][several], color=colour, label=label)
        axes[0, 1].plot(
            k[few], data[f"{name}|norm"][few] * data[f"{name}|outgoing"][few], "o-", ms=3, color=colour, label=label
        )
        if name != "relu":
            axes[0, 2].plot(k[few], data[f"{name}|norm"][few] * np.sqrt(k[few]), "o-", ms=3, color=colour, label=label)
            axes[1, 0].plot(k[few], data[f"{name}|outgoing"][few] / k[few], "o-", ms=3, color=colour, label=label)
    axes[0, 0].set(
        yscale="log",
        xscale="log",
        xlabel="teachers k",
        ylabel="least loss",
        title="Fig. 3C: error of one neuron",
        ylim=(1e-4, None),
    )
    axes[0, 1].plot(np.arange(1, 11), np.sqrt(np.arange(1, 11)), "k:", label="√k")
    axes[0, 1].set(xlabel="teachers k", ylabel="a·‖w‖", title="Fig. 5A: magnitude")
    axes[0, 2].axhline(1, color="black", ls=":")
    axes[0, 2].set(xlabel="teachers k", ylabel="‖w‖·√k", title="Fig. 5B: norm (≤ 1: damped)")
    axes[1, 0].axhline(1, color="black", ls=":")
    axes[1, 0].set(xlabel="teachers k", ylabel="a/k", title="Fig. 5C: outgoing weight")
    norms = data["f_norms"]
    spots = [axes[1, 1], axes[1, 2], axes[2, 0], axes[2, 1], axes[2, 2]]
    for ax, name in zip(spots, ("erf", "softplus", "sigmoid", "tanh:0.5", "gelu"), strict=True):
        for u, row in zip(data["f_correlations"], data[f"{name}|f"], strict=True):
            ax.plot(norms, row, label=f"u = {u:.1f}", lw=1.4)
            change = np.flatnonzero(row[:-1] * row[1:] < 0)
            ax.plot(norms[change], 0 * norms[change], "o", color="black", ms=4)
        ax.axhline(0, color="black", lw=0.8)
        shown = data[f"{name}|f"][:, norms > (0.6 if name == "gelu" else 0.2)]
        low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
        ax.set(
            xlabel="norm r",
            ylabel="f(r, u)",
            title=f"Fig. 10: {LABELS.get(name, name)}",
            ylim=(1.1 * low, max(1.1 * high, 0.05)),
        )
    for ax in (axes[0, 0], axes[0, 1], axes[1, 1]):
        ax.legend(fontsize=7.5)
    axes[1, 0].legend(fontsize=7.5, loc="center right", bbox_to_anchor=(1.0, 0.58), ncols=2)


CLAIM = Claim(
    paper="copy-average",
    id="one-neuron",
    where="Thm 5.1, Cor. 5.2, G.5, Eq. 16, 117-129, Fig. 3C, 5, 10",
    statement=(
        "One student and k orthonormal teachers: critical points have correlation ±1/√k with each teacher. Erf and "
        "ReLU have closed forms; softplus, sigmoid and tanh(x/2) one point at positive correlation each; at negative "
        "correlation there is the mirror image (odd), a saddle (ReLU) or nothing (softplus); the error grows linearly "
        "in k for erf and quadratically for ReLU; gelu has no such point."
    ),
    paper_value={
        "erf": "r = 1/√(2k-1), a = k, L* = (2/π)(k asin ½ - k² asin 1/2k) ≈ k(1/3 - 1/π)",
        "ReLU": "r a = k h(1/√k)/h(1), Eq. 129",
    },
    measured_by=(
        "Zeros of f(r, u) by search, against closed forms and against an independent two-dimensional minimisation."
    ),
    tolerance="1e-12 (closed forms), 1e-10 (independent minimisation)",
    tolerance_reason="Both sides are computed to rounding; the least curvature 1/k³ amplifies it in the minimisation.",
    quick={
        "largest": 100,
        "minimised": [1, 2, 5, 10, 30],
        "gelu_norm": 4.0,
        "gelu_points": 120,
        "gelu_teachers": [2, 3, 5, 10, 100],
    },
    full={
        "largest": 100,
        "minimised": [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 75, 100],
        "gelu_norm": 30.0,
        "gelu_points": 400,
        "gelu_teachers": [2, 3, 4, 5, 7, 10, 20, 50, 100],
    },
    measure=_measure,
    figure=_figure,
)
