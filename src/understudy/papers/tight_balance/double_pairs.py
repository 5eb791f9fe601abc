r"""Minima at ρ = 4 that are not copies: what students do that share a teacher beside others who do.

At ρ = 4 a tight-balance pair that is orthogonal to all others is left along a direction that is flat to third order.
A neighbour that leans the same way closes that direction. Two such minima were found, each of four students in the
span of three teachers, beside which any further students copy further teachers:

- the *double pair*: cos θ v_1 ± sin θ v_3 and cos θ v_2 ± sin θ v_3, two tight pairs that lean toward one teacher. The
  loss of the four is 2 cos⁴ 2θ + 4 sin⁸ θ - 4 (cos⁴ θ + sin⁴ θ) + 2 + k/2, so that c = cos 2θ solves

      9 c³ - 3 c² - c - 1 = 0,

  c = 0.710132, where a tight pair alone has c = 1/√2;
- the *pair over two copies*: two students share v_3 and lean toward a direction between v_1 and v_2, which two others
  copy, except that these turn a little (by 0.6° and 0.5°).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from understudy.papers.cells import compute
from understudy.papers.check import at_least, at_most, close, equal
from understudy.papers.claim import Progress, Settings
from understudy.papers.measurement import Measurement
from understudy.papers.tight_balance.sphere_runs import sphere_cell, sphere_cells
from understudy.points import certify
from understudy.points.plateaus import nearest_critical
from understudy.tasks.sphere import Sphere

NAMES = ("double pair", "pair over two copies")
OVER = ((-0.2645, -0.2236, -0.9381), (-0.2645, -0.2236, 0.9381), (0.0058, -1.0, 0.0), (1.0, -0.0082, 0.0))
"""A start of Newton's method for the pair over two copies, in the span of v_1, v_2 and v_3."""


def cubic_root() -> float:
    """cos 2θ of the double pair at ρ = 4.

    >>> round(cubic_root(), 6)
    0.710132
    """
    roots = np.roots([9.0, -3.0, -1.0, -1.0])
    return float(roots[np.abs(roots.imag) < 1e-9].real[0])


def double_pair(dim: int) -> np.ndarray:
    """Its four rows in dimension `dim`, in closed form."""
    c = cubic_root()
    cos, sin = np.sqrt((1 + c) / 2), np.sqrt((1 - c) / 2)
    rows = np.zeros((4, dim))
    rows[[0, 1], 0], rows[[2, 3], 1] = cos, cos
    rows[:, 2] = [sin, -sin, sin, -sin]
    return rows


def double_loss(teachers: int) -> float:
    """The loss of the double pair in closed form."""
    c = cubic_root()
    return 2 * c**4 + (1 - c) ** 4 / 4 - 2 * (1 + c * c) + 2 + teachers / 2


def _points(dim: int) -> dict[str, np.ndarray]:
    """Both points with four teachers in dimension `dim`, unit rows."""
    task = Sphere(np.eye(4, dim), 4)
    start = np.zeros((4, dim))
    start[:, :3] = OVER
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    over, _ = nearest_critical(task, start.ravel(), steps=30)
    return {NAMES[0]: double_pair(dim), NAMES[1]: over.reshape(4, dim)}


def double_pairs(settings: Settings, progress: Progress) -> Measurement:
    """Certify both points, and compare the ends of runs with them."""
    kinds: dict[str, list[str]] = {name: [] for name in NAMES}
    least, steepest, losses = [], [], dict[str, float]()
    for dim in settings["dims"]:
        task = Sphere(np.eye(4, dim), 4)
        for name, rows in _points(dim).items():
            certificate = certify(task, rows)
            kinds[name].append(certificate.kind)
            least.append(certificate.least_eigenvalue)
            steepest.append(certificate.gradient_norm)
            losses[name] = float(task.loss(rows.ravel()))
    points = _points(settings["dims"][0])
    measured: dict[str, Any] = {
        "cos 2θ of the double pair": cubic_root(),
        "losses, four students and four teachers": losses,
        "pair over two copies": [[round(float(x), 6) for x in row[:3]] for row in points[NAMES[1]]],
        "least eigenvalues": [float(f"{x:.4g}") for x in least],
    }
    checks = [
        equal("kinds in every dimension", {name: ["minimum"] for name in NAMES},
              {name: sorted(set(found)) for name, found in kinds.items()}),
        at_most("gradient norms", steepest, bound=1e-12),
        at_least("least eigenvalues: no flat direction", least, bound=5e-4),
        close("loss of the double pair against its closed form", double_loss(4), losses[NAMES[0]], 1e-12),
    ]  # fmt: skip
    if settings["runs"]:
        found = compute(sphere_cell, sphere_cells(settings["runs"], settings["seeds"]), progress, keep=settings["keep"])
        strangers, small = [], []
        for (n, k, d, degree), part in zip(settings["runs"], found, strict=True):
            told = [_told(row, n, k, losses) for row in zip(part["label"].values, part["loss"].values, strict=True)]
            minima = part["kind"].values == "minimum"
            measured[f"n = {n}, k = {k}, d = {d}, ρ = {degree}"] = dict(Counter(told).most_common())
            strangers += [name for name, is_minimum in zip(told, minima, strict=True) if is_minimum and name == "other"]
            if n < 4:
                small += [name for name in told if name in NAMES]
        checks += [
            equal("minima of runs that are neither copies nor one of the two", 0, len(strangers)),
            equal("fewer than four students: runs that end in one of the two", 0, len(small)),
        ]
    data = {name: value[:, :3] for name, value in points.items()}
    notes = (
        "Further students copy further teachers, orthogonal to these four, and change nothing but the constant. A run "
        "is told by its loss, to 1e-6, and copies by their label."
    )
    return Measurement(checks, measured, data=data, notes=notes)


def _told(row: tuple[Any, Any], n: int, k: int, losses: dict[str, float]) -> str:
    """What a run ended in: copies, copies and one tight pair, one of the two minima, or something else."""
    label, loss = str(row[0]), float(row[1]) - (k - n) / 2
    if label == f"{n}-copy":
        return "copies"
    for name in NAMES:
        if abs(loss - losses[name]) < 1e-6:
            return name
    return "one tight pair" if label.endswith("1-tight-pair") else "other"


def draw_double_pairs(measurement: Measurement, figure: Any) -> None:
    """Both minima: components of the four students along the three teachers."""
    figure.set_size_inches(7.0, 3.0)
    axes = figure.subplots(1, 2)
    for ax, name in zip(axes, NAMES, strict=True):
        image = ax.imshow(measurement.data[name], cmap="RdBu_r", vmin=-1, vmax=1)
        for (i, j), value in np.ndenumerate(measurement.data[name]):
            ax.text(j, i, f"{value:.3f}", ha="center", va="center", fontsize=8)
        ax.set(title=name, xlabel="teacher", ylabel="student")
        ax.set_xticks(range(3), ["$v_1$", "$v_2$", "$v_3$"])
        ax.set_yticks(range(4), [str(i + 1) for i in range(4)])
    figure.colorbar(image, ax=list(axes), label="w·v")
