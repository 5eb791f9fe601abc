"""Claim `forces`: attraction and repulsion at the end of training on three digits."""

from typing import TYPE_CHECKING, Any

from understudy.papers.check import at_most, between
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIGITS = (7, 8, 9)
NEAR = 0.3
"""Neurons are on one ray if their unit vectors are this near: angles up to 17°."""


def _digits(count: int) -> tuple[Any, Any]:
    """The first `count` training images of each digit, grey values 0 … 1, and labels."""
    import numpy as np

    from understudy.data.mnist import mnist

    data = mnist()
    chosen = np.concatenate([np.flatnonzero(data.y_train == digit)[:count] for digit in DIGITS])
    return data.x_train[chosen].reshape(len(chosen), -1) / 255.0, data.y_train[chosen].astype(int)


def _clustering(layer: Any, labels: Any) -> float:
    """Mean distance within classes over mean distance between classes, of the columns (inputs)."""
    import numpy as np

    distance = np.linalg.norm(layer.T[:, None] - layer.T[None, :], axis=2)
    same = labels[:, None] == labels[None, :]
    off = ~np.eye(len(labels), dtype=bool)
    return float(distance[same & off].mean() / distance[~same].mean())


def _on_rays(layer: Any, count: int) -> float:
    """Share of the squared norm of all neurons that the projections onto the `count` heaviest rays explain."""
    import numpy as np

    from understudy.surgery import aligned_groups

    lengths = np.linalg.norm(layer, axis=1)
    groups = sorted(aligned_groups(layer, tolerance=NEAR), key=lambda g: -float(np.sum(lengths[list(g)] ** 2)))
    leaders = [max(group, key=lambda i: lengths[i]) for group in groups[:count]]
    along = np.maximum(layer @ (layer[leaders] / lengths[leaders, None]).T, 0)
    return float(np.sum(np.max(along, axis=1) ** 2) / np.sum(layer**2))


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import jax.numpy as jnp
    import numpy as np

    from understudy.dynamics.descent import descend
    from understudy.dynamics.settle import settle
    from understudy.regularised.forces import forces
    from understudy.surgery import condense
    from understudy.tasks.regularised import Regularised

    x, labels = _digits(settings["each"])
    hidden = (settings["width"], settings["width"])
    classes = np.searchsorted(DIGITS, labels)  # three outputs, one per digit
    full = Regularised(x, classes, hidden, penalty=settings["penalty"], cost="cross-entropy")
    task, _ = full.reduced()
    progress(0.05, "training")
    points, losses = descend(task, task.starts([0]), settings["steps"], settings["rate"])
    wide = forces(task, points[0], ridge=1e-6)
    progress(0.5, "settling one neuron a ray")
    narrow, start = condense(task, points[0], tolerance=NEAR)
    settled = settle(narrow, start)
    exact = forces(narrow, jnp.asarray(settled.vector), gates=settled.gates)
    balance = [f.residual / float(np.linalg.norm(f.attraction)) for f in exact]
    bound = [f.residual / max(f.conditioning * settled.residual, 1e-13) for f in exact]
    rough = [float(np.linalg.norm(f.attraction + f.local_repulsion) / np.linalg.norm(f.attraction)) for f in wide]
    local = [float(np.linalg.norm(f.attraction + f.local_repulsion) / np.linalg.norm(f.attraction)) for f in exact]
    tight = [_clustering(f.representation, labels) for f in wide]
    before = _clustering(x.T, labels)
    shares = [_on_rays(f.representation, 3) for f in wide]
    checks = [
        at_most("settled: subgradient norm of the optimiser", settled.residual, bound=1e-9),
        at_most("settled: ‖attraction + repulsion‖ / (conditioning × subgradient norm)", bound, bound=2.0),
        at_most("settled: ‖attraction + repulsion‖ / ‖attraction‖", balance, bound=1e-6),
        between("neurons of layer 2 on three rays: share of squared norm", shares[1], low=0.99, high=1.0),
        at_most("distances within / between classes: layer 2 against inputs", tight[1] / before, bound=0.25),
        at_most("distances within / between classes: layer 2 against layer 1", tight[1] / tight[0], bound=1.0),
    ]
    measured = {
        "relative imbalance, settled": balance,
        "of it without the force of the constraint": local,
        "relative imbalance at the end of Adam, Tikhonov 1e-6, local forces": rough,
        "share on three rays": shares,
        "within / between": {"inputs": before, "layer 1": tight[0], "layer 2": tight[1]},
        "neurons left": list(narrow.widths[1:-1]),
        "pre-activations at kinks": int(settled.pinned.sum()),
        "loss": {"Adam": float(losses[0]), "settled": settled.loss},
    }
    data: dict[str, Any] = {"labels": labels}
    for f in wide:
        data |= {f"Z{f.layer}": f.representation, f"A{f.layer}": f.attraction, f"R{f.layer}": f.local_repulsion}
    notes = (
        f"λ = {settings['penalty']:g} and Adam, {settings['steps']} steps, are ours: the paper gives neither λ nor "
        f"rate. Balance is exact "
        "with the force of the constraint Im Z_{ℓ+1}ᵀ ⊂ Im (Z^σ_ℓ)ᵀ and with slopes in [0, 1] at kinks; the two "
        "derivatives alone, as "
        "the paper defines the forces, cancel only where Z^σ_ℓ has rank N, and here its rank is the number of rays. "
        "Layer 1 has more rays "
        "than three, see the share above; how many depends on λ."
    )
    return Measurement(checks, measured, data=data, notes=notes)


def _plane(rows: Any) -> Any:
    """The two leading principal directions of the rows (through the origin, where the rays begin)."""
    import numpy as np

    return np.linalg.svd(rows, full_matrices=False)[2][:2].T


def _figure(measurement: Measurement, figure: "Figure") -> None:
    import numpy as np

    data = measurement.data
    labels = np.asarray(data["labels"])
    figure.set_size_inches(10, 8.5)
    panels = figure.subplots(2, 2)
    for row, layer in zip(panels, (1, 2), strict=True):
        z, pull, push = (np.asarray(data[f"{name}{layer}"]) for name in ("Z", "A", "R"))
        for axes, rows, attraction, repulsion, what in (
            (row[0], z.T, pull.T, push.T, "inputs"),
            (row[1], z, pull, push, "neurons"),
        ):
            plane = _plane(rows)
            at, a, r = rows @ plane, -attraction @ plane, -repulsion @ plane
            length = 0.25 * np.abs(at).max() / max(np.abs(a).max(), np.abs(r).max())
            style = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.004, "zorder": 1}
            axes.quiver(at[:, 0], at[:, 1], length * a[:, 0], length * a[:, 1], color="#009E73", **style)
            axes.quiver(at[:, 0], at[:, 1], length * r[:, 0], length * r[:, 1], color="#D55E00", **style)
            if what == "inputs":
                for digit, marker, colour in zip(
                    DIGITS, ("o", "s", "^"), ("#0072B2", "#CC79A7", "#000000"), strict=True
                ):
                    chosen = labels == digit
                    axes.plot(
                        at[chosen, 0], at[chosen, 1], marker, color=colour, ms=5, label=f"digit {digit}", zorder=2
                    )
            else:
                axes.plot(at[:, 0], at[:, 1], ".", color="black", ms=5, zorder=2)
                for point in at:
                    axes.plot([0, point[0]], [0, point[1]], color="grey", lw=0.5, ls="--", zorder=0)
            tips = np.concatenate(
                [at, at + length * a, at + length * r] + ([np.zeros((1, 2))] if what == "neurons" else [])
            )
            low, high = tips.min(axis=0), tips.max(axis=0)
            room = 0.05 * (high - low)
            axes.set(xlim=(low[0] - room[0], high[0] + room[0]), ylim=(low[1] - room[1], high[1] + room[1]))
            axes.set(title=f"layer {layer}: {what}", xlabel="first principal direction", ylabel="second")
    figure.suptitle("Attraction (green) and repulsion (orange), as they move the layer downhill", fontsize=12)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)


CLAIM = Claim(
    paper="attraction-repulsion",
    id="forces",
    where="Sec. 3.1 (4), Fig. 1",
    statement=(
        "At a minimum the attraction of every hidden layer balances its repulsion; on three digits inputs cluster by "
        "class and neurons align along three rays."
    ),
    paper_value="balance; three clusters, three rays",
    measured_by=(
        "Depth 3 on MNIST digits 7, 8, 9; the end of training, and the same network with one neuron a ray settled to "
        "rounding."
    ),
    tolerance="2 × conditioning × subgradient norm",
    tolerance_reason=(
        "The residual equals (∂L/∂W_ℓ)(Z^σ_{ℓ-1})⁺ᵀ, at most the gradient norm over the least singular value."
    ),
    quick={"each": 5, "width": 20, "penalty": 3e-3, "steps": 3000, "rate": 1e-2},
    full={"each": 14, "width": 50, "penalty": 3e-3, "steps": 20_000, "rate": 1e-2},
    measure=_measure,
    figure=_figure,
)
