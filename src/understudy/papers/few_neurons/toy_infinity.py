"""Claim `toy-infinity`: a model in two dimensions of a minimum at infinity."""

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.papers.check import at_most, close, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONSTANTS = ((-2.0, 1.0), (-1.0, 1.0), (2.0, 1.0))
PUSH = 1e-3


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from understudy.dynamics import FlowOptions, follow
    from understudy.dynamics.divergence import find_divergence
    from understudy.papers.few_neurons.infinity_model import InfinityModel, curvature_on_the_line
    from understudy.points.splitting import mixing

    mus = np.array([-3.0, -0.7, 0.2, 0.5, 0.9, 1.4, 5.0])
    batch = eqx.filter_jit(lambda t, v: jax.vmap(t.evaluate)(v))
    slopes, mixed, second, twice = [], [], [], []
    ends: dict[str, Any] = {}
    data: dict[str, Any] = {}
    right, wrong_sign, finite, exponents, returned = [], [], [], [], []
    total = len(CONSTANTS)
    for number, (c1, c2) in enumerate(CONSTANTS):
        progress(number / total, f"c = ({c1:g}, {c2:g})")
        task = InfinityModel(c1, c2)
        at = batch(task, jnp.stack([jnp.zeros(len(mus)), jnp.asarray(mus)], axis=1))
        slopes.append(float(jnp.abs(at.gradient).max()))
        hessians = np.asarray(at.hessian)
        mixed.append(float(np.abs(hessians[:, 0, 1]).max() + np.abs(hessians[:, 1, 1]).max()))
        u = mixing(mus)
        second.append(float(np.abs(hessians[:, 0, 0] - curvature_on_the_line(c1, c2, u)).max()))
        twice.append(float(np.abs(hessians[:, 0, 0] - 2 * curvature_on_the_line(c1, c2, u)).max()))
        opposite = c1 * c2 < 0
        options = FlowOptions(max_time=settings["time"], rtol=1e-7, atol=1e-9)
        begin = [(sign, mu) for mu in settings["mus"] for sign in (1, -1)]
        starts = np.array([[sign * PUSH, mu] for sign, mu in begin])
        for index, run in follow(task, starts, options):
            sign, mu = begin[index]
            w, m = run.vector
            name = f"c = ({c1:g}, {c2:g}), μ = {mu:g}, w {'>' if sign > 0 else '<'} 0"
            inside = 0 < mu < 1
            if inside == opposite:  # minima on the line: the push comes back to it
                ends[name] = f"back to the line, w = {w:.1e}, μ = {m:.3f}"
                returned.append(abs(w) < 1e-4 and abs(m - mu) < 0.05)
            elif opposite:
                found = find_divergence(run)
                ends[name] = f"w → {w:.4f}, |μ| ~ t^{found.exponent:.2f}" if found else f"w = {w:.4f}, μ = {m:.1f}"
                exponents.append(found.exponent if found else np.nan)
                positive, negative = max(c1, c2), min(c1, c2)
                # u → -½: a push to w > 0 ends at u c for the negative c. As printed: c/2, and reversed for μ < 0.
                right.append(w - (-negative / 2 if sign > 0 else -positive / 2))
                first, other = positive / 2, negative / 2
                literal = (first if sign > 0 else other) if mu > 1 else (other if sign > 0 else first)
                wrong_sign.append(w - literal)
                finite.append(np.sign(m) == np.sign(mu - 0.5))
            elif sign > 0:
                ends[name] = f"minimum at w = {w:.6f}, μ = {m:.6f}"
                data[f"minimum {c1:g} {c2:g}"] = np.array([w, m])
            else:
                ends[name] = f"off to w = {w:.3g} ({run.ending})"
                returned.append(w < -3)
    minimum = data["minimum 2 1"]
    checks = [
        at_most("gradient on the line w = 0", slopes, bound=1e-15),
        at_most("mixed and μμ second derivatives on the line", mixed, bound=1e-14),
        at_most("∂²L/∂w² = -c1 c2 u³: largest deviation", second, bound=1e-13),
        equal(
            "pushes that neither return where the line is a minimum nor diverge where they should",
            0,
            int(np.sum(~np.array(returned))),
        ),
        close(
            "opposite signs: w at infinity is -c/2 of the constant of opposite sign to w, whatever the sign of μ",
            0.0,
            right,
            0.01,
        ),
        equal("runs whose μ goes to the infinity on its own side", len(finite), int(np.sum(finite))),
        close("|μ| grows like t^¼: exponent", 0.25, exponents, 0.03),
        close("same signs: minimum at (min(c1, c2)/2, ½)", [0.5, 0.5], minimum, 1e-6),
    ]
    printed = [
        at_most("∂²L/∂w² = -2 c1 c2 u³, as printed: largest deviation", twice, bound=1e-13),
        close(
            "w at infinity as printed: c1/2 (c1 > 0) for w > 0 and μ > 1, and reversed for μ < 0", 0.0, wrong_sign, 0.01
        ),
        close("minimum at (min(c1, c2), ½), as printed", [1.0, 0.5], minimum, 1e-6),
    ]
    grid_w, grid_mu = np.linspace(-1.6, 1.6, 161), np.linspace(-2.0, 3.0, 161)
    mesh = np.stack(np.meshgrid(grid_w, grid_mu, indexing="ij"), axis=-1).reshape(-1, 2)
    for c1, c2 in CONSTANTS:
        surface = InfinityModel(c1, c2).loss(jnp.asarray(mesh))
        data[f"surface {c1:g} {c2:g}"] = np.asarray(surface).reshape(161, 161)
    data |= {"w": grid_w, "mu": grid_mu}
    note = (
        "The printed first derivative gives ∂²L/∂w² = -c1 c2 u³ on the line; the printed one has a factor 2 (the "
        "signs, and so the kinds of points, stay). Its other zeros are w = u c1 and u c2 with u → -½ as μ → ±∞, so "
        "minima at infinity are at w = -c1/2 and -c2/2: a push to w > 0 ends at -c/2 for the negative constant, not at "
        "c/2 for the positive one; and since L depends on μ through u(μ) = u(1-μ) alone, w is not reflected for μ < 0. "
        "For equal signs the minimum is at (min(c1, c2)/2, ½), because u(½) = ½."
    )
    return Measurement(checks, ends, data=data, printed=printed, erratum_note=note)


def _figure(measurement: Measurement, figure: "Figure") -> None:
    figure.set_size_inches(11.0, 3.8)
    axes = figure.subplots(1, 3)
    data = measurement.data
    for ax, (c1, c2) in zip(axes, CONSTANTS, strict=True):
        surface = data[f"surface {c1:g} {c2:g}"]
        shown = np.arcsinh(surface / 1e-3)
        image = ax.pcolormesh(
            data["w"], data["mu"], shown.T, cmap="PuOr_r", vmin=-6, vmax=6, shading="auto", rasterized=True
        )
        ax.axvline(0, color="black", lw=1)
        u = 0.5 / (2 * data["mu"] ** 2 - 2 * data["mu"] + 1) - 0.5
        for c, style in ((c1, "--"), (c2, ":")):
            ax.plot(u * c, data["mu"], style, color="black", lw=1.2, label=f"w = {c:g} u(μ)")
        ax.set(title=f"c = ({c1:g}, {c2:g})", xlabel="w", xlim=(-1.6, 1.6))
        ax.grid(False)
        ax.legend(fontsize=8, loc="upper right", frameon=True)
    axes[0].set_ylabel("μ")
    figure.colorbar(image, ax=axes, label="arsinh(1000 L)")


CLAIM = Claim(
    paper="few-neurons",
    id="toy-infinity",
    where="App. D.2.3, Fig. 8",
    statement=(
        "The model L(w, μ) has a critical line w = 0; for c1 c2 < 0 pushes off its saddles run to minima at infinity "
        "at w = c1/2 or c2/2, for c1, c2 > 0 to a minimum at (min(c1, c2), ½) or away."
    ),
    paper_value="∂²L/∂w² = -2 c1 c2 u³; destinations (c1/2, ±∞), (c2/2, ±∞), (min{c1, c2}, 0.5)",
    measured_by=(
        "Automatic derivatives on the line; flows of pushes to both sides, divergence recognised from the trajectory."
    ),
    tolerance="1e-13 (derivatives); 0.01 (w at infinity); 0.03 (exponent)",
    tolerance_reason=(
        "At the end of the flow |μ| is about a hundred: u is within 1e-4 of -½, and the exponent is that of the last "
        "decade."
    ),
    quick={"time": 1e9, "mus": [-0.5, 0.4, 1.5]},
    full={"time": 1e12, "mus": [-1.0, -0.5, 0.2, 0.4, 0.6, 1.2, 1.5, 2.0]},
    measure=_measure,
    figure=_figure,
)
