"""The figure of `understudy layers`: covariances, spectra and the forces on every hidden layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.plots.style import COLOURS, given_axes, house_style, new_figure


def layers(rows: list[dict[str, Any]], arrays: dict[str, np.ndarray], axes: Any = None) -> Any:
    """Covariances, spectra and forces, one row of three panels per hidden layer; returns the figure."""
    with house_style():
        if axes is None:
            axes = new_figure(11, 3.4 * len(rows)).subplots(len(rows), 3, squeeze=False)
        panels = given_axes(axes, 3 * len(rows))
        for i, row in enumerate(rows):
            covariance, spectra, forces = panels[3 * i : 3 * i + 3]
            number = row["layer"]
            gram = arrays[f"K_activated{number}"]
            image = covariance.imshow(gram, cmap="viridis")
            covariance.grid(False)
            covariance.set(title=f"layer {number}: covariance of activations", xlabel="input", ylabel="input")
            covariance.figure.colorbar(image, ax=covariance, shrink=0.85)
            _spectra(spectra, arrays[f"K{number}"], gram, row)
            _forces(forces, arrays[f"Z{number}"], arrays[f"attraction{number}"], arrays[f"repulsion{number}"], row)
        return panels[0].figure


def _spectra(axes: Any, plain: np.ndarray, activated: np.ndarray, row: dict[str, Any]) -> None:
    for gram, name, marker, colour in ((plain, "K", "o", COLOURS[0]), (activated, "Kσ", "s", COLOURS[1])):
        values = np.linalg.eigvalsh(gram)[::-1]
        shown = np.maximum(values / max(values[0], 1e-300), 1e-17)
        axes.semilogy(np.arange(1, len(shown) + 1), shown, marker, ms=4, color=colour, label=name)
    axes.axhline(1e-12, color="black", lw=0.8, ls="--")
    title = f"ranks {row['rank']} and {row['rank_activated']}; {row['rays']} rays of {row['neurons']} neurons"
    axes.set(xlabel="index", ylabel="eigenvalue / largest", title=title)
    axes.legend()


def _forces(axes: Any, z: np.ndarray, attraction: np.ndarray, repulsion: np.ndarray, row: dict[str, Any]) -> None:
    """Neurons and the forces on them in the plane of the two leading directions, through the origin."""
    plane = np.linalg.svd(z, full_matrices=False)[2][:2].T
    if plane.shape[1] < 2:
        plane = np.concatenate([plane, np.zeros_like(plane)], axis=1)
    at, pull, push = z @ plane, -attraction @ plane, -repulsion @ plane
    largest = max(np.abs(pull).max(), np.abs(push).max(), 1e-300)
    length = 0.25 * np.abs(at).max() / largest
    style = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.005}
    axes.quiver(
        at[:, 0], at[:, 1], length * pull[:, 0], length * pull[:, 1], color=COLOURS[2], label="attraction", **style
    )
    axes.quiver(
        at[:, 0], at[:, 1], length * push[:, 0], length * push[:, 1], color=COLOURS[1], label="repulsion", **style
    )
    axes.plot(at[:, 0], at[:, 1], ".", color="black")
    reach = 1.35 * np.abs(at).max()
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
    axes.set(xlabel="first direction", ylabel="second", title=f"neurons; imbalance {row['imbalance']:.1e}")
    axes.legend(fontsize=8)
