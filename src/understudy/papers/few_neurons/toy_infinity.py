"""Claim `toy-infinity`: a model in two dimensions of a minimum at infinity."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from understudy.papers.check import Check, at_most, close, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONSTANTS = ((-2.0, 1.0), (-1.0, 1.0), (2.0, 1.0))
PUSH = 1e-3


class Line(NamedTuple):
    """Largest absolute values on the line w = 0, for each pair of constants.

    `slope`: of the gradient; `mixed`: of the other second derivatives, their sum; `corrected` and `printed`: of the
    deviation of ∂²L/∂w² from each formula.
    """

    slope: float
    mixed: float
    corrected: float
    printed: float


class End(NamedTuple):
    """One push off the line: constants, side and μ at the start, how the run ended, where, and how it diverges."""

    c1: float
    c2: float
    sign: int
    mu: float
    ending: str
    w: Any
    m: Any
    divergence: Any

    @property
    def opposite(self) -> bool:
        """Whether the constants have opposite signs."""
        return self.c1 * self.c2 < 0

    @property
    def returns(self) -> bool:
        """Whether the line has a minimum at this μ, so that the push comes back to it."""
        return (0 < self.mu < 1) == self.opposite

    @property
    def escapes(self) -> bool:
        """Whether the push should run off to a minimum at infinity."""
        return self.opposite and not self.returns

    @property
    def converges(self) -> bool:
        """Whether the push should end in the minimum off the line."""
        return not self.opposite and not self.returns and self.sign > 0

    @property
    def words(self) -> str:
        """Where the push ended."""
        if self.returns:
            return f"back to the line, w = {self.w:.1e}, μ = {self.m:.3f}"
        if self.escapes and self.divergence:
            return f"w → {self.w:.4f}, |μ| ~ t^{self.divergence.exponent:.2f}"
        if self.escapes:
            return f"w = {self.w:.4f}, μ = {self.m:.1f}"
        if self.converges:
            return f"minimum at w = {self.w:.6f}, μ = {self.m:.6f}"
        return f"off to w = {self.w:.3g} ({self.ending})"


def _measure(settings: Settings, progress: Progress) -> Measurement:
    lines, ends = _lines(), _ends(settings, progress)
    minima = {(e.c1, e.c2): np.array([e.w, e.m]) for e in ends if e.converges}
    escapes = [e for e in ends if e.escapes]
    minimum = minima[2.0, 1.0]
    checks = [
        at_most("gradient on the line w = 0", [line.slope for line in lines], bound=1e-15),
        at_most("mixed and μμ second derivatives on the line", [line.mixed for line in lines], bound=1e-14),
        at_most("∂²L/∂w² = -c1 c2 u³: largest deviation", [line.corrected for line in lines], bound=1e-13),
        *_checks_of_ends(ends, escapes),
        close("same signs: minimum at (min(c1, c2)/2, ½)", [0.5, 0.5], minimum, 1e-6),
    ]
    printed = [
        at_most("∂²L/∂w² = -2 c1 c2 u³, as printed: largest deviation", [line.printed for line in lines], bound=1e-13),
        close(
            "w at infinity as printed: c1/2 (c1 > 0) for w > 0 and μ > 1, and reversed for μ < 0",
            0.0,
            [e.w - _printed_limit(e) for e in escapes],
            0.01,
        ),
        close("minimum at (min(c1, c2), ½), as printed", [1.0, 0.5], minimum, 1e-6),
    ]
    note = (
        "The printed first derivative gives ∂²L/∂w² = -c1 c2 u³ on the line; the printed one has a factor 2 (the "
        "signs, and so the kinds of points, stay). Its other zeros are w = u c1 and u c2 with u → -½ as μ → ±∞, so "
        "minima at infinity are at w = -c1/2 and -c2/2: a push to w > 0 ends at -c/2 for the negative constant, not at "
        "c/2 for the positive one; and since L depends on μ through u(μ) = u(1-μ) alone, w is not reflected for μ < 0. "
        "For equal signs the minimum is at (min(c1, c2)/2, ½), because u(½) = ½."
    )
    words = {f"c = ({e.c1:g}, {e.c2:g}), μ = {e.mu:g}, w {'>' if e.sign > 0 else '<'} 0": e.words for e in ends}
    data = {f"minimum {c1:g} {c2:g}": point for (c1, c2), point in minima.items()} | _surfaces()
    return Measurement(checks, words, data=data, printed=printed, erratum_note=note)


def _lines() -> list[Line]:
    """Derivatives on the line by automatic differentiation, beside the formulas."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from understudy.papers.few_neurons.infinity_model import InfinityModel, curvature_on_the_line
    from understudy.points.splitting import mixing

    mus = np.array([-3.0, -0.7, 0.2, 0.5, 0.9, 1.4, 5.0])
    u = mixing(mus)
    batch = eqx.filter_jit(lambda t, v: jax.vmap(t.evaluate)(v))
    lines = []
    for c1, c2 in CONSTANTS:
        at = batch(InfinityModel(c1, c2), jnp.stack([jnp.zeros(len(mus)), jnp.asarray(mus)], axis=1))
        hessians = np.asarray(at.hessian)
        formula = curvature_on_the_line(c1, c2, u)
        lines.append(
            Line(
                float(jnp.abs(at.gradient).max()),
                float(np.abs(hessians[:, 0, 1]).max() + np.abs(hessians[:, 1, 1]).max()),
                float(np.abs(hessians[:, 0, 0] - formula).max()),
                float(np.abs(hessians[:, 0, 0] - 2 * formula).max()),
            )
        )
    return lines


def _ends(settings: Settings, progress: Progress) -> list[End]:
    """Where pushes off the line to both sides end."""
    from understudy.dynamics import FlowOptions, follow
    from understudy.dynamics.divergence import find_divergence
    from understudy.papers.few_neurons.infinity_model import InfinityModel

    options = FlowOptions(max_time=settings["time"], rtol=1e-7, atol=1e-9)
    begin = [(sign, mu) for mu in settings["mus"] for sign in (1, -1)]
    starts = np.array([[sign * PUSH, mu] for sign, mu in begin])
    ends = []
    for number, (c1, c2) in enumerate(CONSTANTS):
        progress(number / len(CONSTANTS), f"c = ({c1:g}, {c2:g})")
        for index, run in follow(InfinityModel(c1, c2), starts, options):
            (sign, mu), (w, m) = begin[index], run.vector
            end = End(c1, c2, sign, mu, run.ending, w, m, None)
            ends.append(end._replace(divergence=find_divergence(run)) if end.escapes else end)
    return ends


def _checks_of_ends(ends: list[End], escapes: list[End]) -> list[Check]:
    """Whether pushes return where the line is a minimum, and run off with the right limit and rate elsewhere."""
    returned = [abs(e.w) < 1e-4 and abs(e.m - e.mu) < 0.05 for e in ends if e.returns]
    returned += [e.w < -3 for e in ends if not (e.returns or e.escapes or e.converges)]
    own_side = [np.sign(e.m) == np.sign(e.mu - 0.5) for e in escapes]
    return [
        equal(
            "pushes that neither return where the line is a minimum nor diverge where they should",
            0,
            int(np.sum(~np.array(returned))),
        ),
        close(
            "opposite signs: w at infinity is -c/2 of the constant of opposite sign to w, whatever the sign of μ",
            0.0,
            # u → -½: a push to w > 0 ends at u c for the negative c.
            [e.w - (-min(e.c1, e.c2) / 2 if e.sign > 0 else -max(e.c1, e.c2) / 2) for e in escapes],
            0.01,
        ),
        equal("runs whose μ goes to the infinity on its own side", len(own_side), int(np.sum(own_side))),
        close(
            "|μ| grows like t^¼: exponent",
            0.25,
            [e.divergence.exponent if e.divergence else np.nan for e in escapes],
            0.03,
        ),
    ]


def _printed_limit(end: End) -> float:
    """Where w goes as printed: to c/2 for the positive c if w > 0 and μ > 1, and reversed for μ < 0."""
    first, other = max(end.c1, end.c2) / 2, min(end.c1, end.c2) / 2
    return first if (end.sign > 0) == (end.mu > 1) else other


def _surfaces() -> dict[str, np.ndarray]:
    """The loss on a grid, for each pair of constants."""
    import jax.numpy as jnp

    from understudy.papers.few_neurons.infinity_model import InfinityModel

    grid_w, grid_mu = np.linspace(-1.6, 1.6, 161), np.linspace(-2.0, 3.0, 161)
    mesh = np.stack(np.meshgrid(grid_w, grid_mu, indexing="ij"), axis=-1).reshape(-1, 2)
    surfaces = {
        f"surface {c1:g} {c2:g}": np.asarray(InfinityModel(c1, c2).loss(jnp.asarray(mesh))).reshape(161, 161)
        for c1, c2 in CONSTANTS
    }
    return {**surfaces, "w": grid_w, "mu": grid_mu}


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
