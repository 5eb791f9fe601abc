"""The loss and its gradient, copies and the global minimum, the Euclidean gradient, and the quadratic activation."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares

import understudy as us
from understudy.dynamics import FlowOptions, follow, starts
from understudy.papers.check import at_least, at_most, close, holds
from understudy.papers.claim import Progress, Settings
from understudy.papers.measurement import Measurement
from understudy.tasks.sphere import Sphere


def unit_rows(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Rows uniform on the unit sphere."""
    rows = rng.normal(size=shape)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


@eqx.filter_jit
def _hessians(task: Sphere, w: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The Riemannian Hessian in closed form and by automatic differentiation."""
    local, origin = task.chart(w)
    return local.evaluate(origin).hessian, jax.hessian(local.value)(origin)


def loss_gradient(settings: Settings, progress: Progress) -> Measurement:
    """Loss and derivatives by two routes each, and norms along long flows."""
    rng = np.random.default_rng(0)
    worst = {"loss": 0.0, "gradient": 0.0, "formula": 0.0, "hessian": 0.0}
    n, k, d = 3, 4, 5
    for degree in progress.over(settings["degrees"], "degree"):
        scale = degree**2 * (n + k)
        for _ in range(settings["samples"]):
            task = Sphere(unit_rows(rng, k, d), n, activation=f"hermite:{degree}")
            w = jnp.asarray(unit_rows(rng, n, d).ravel())
            # E[(f - f*)²]/2 and its derivative from the general Gaussian calculus, which knows nothing of spheres.
            population = task.population
            worst["loss"] = max(worst["loss"], abs(float(population.loss(w)) / 2 - float(task.loss(w))) / scale)
            rows = np.asarray(w).reshape(n, d)
            ambient = np.asarray(population.gradient(w)).reshape(n, d) / 2
            tangential = ambient - np.sum(ambient * rows, axis=1, keepdims=True) * rows
            own = np.asarray(task.gradient(w)).reshape(n, d)
            worst["gradient"] = max(worst["gradient"], float(np.abs(tangential - own).max()) / scale)
            a = np.asarray(task.euclidean_gradient(w))
            printed = a - np.diag(np.diag(a @ rows.T)) @ rows
            worst["formula"] = max(worst["formula"], float(np.abs(printed - own).max()) / scale)
            closed, automatic = (np.asarray(x) for x in _hessians(task, w))
            worst["hessian"] = max(worst["hessian"], float(np.abs(automatic - closed).max()) / scale)
    task = Sphere(np.eye(2, settings["dim"]), 2)
    vectors = task.flatten(starts.uniform_sphere(task, settings["seeds"]))
    options = FlowOptions(max_time=1e6, stop=0.0, polish=False, snapshots=np.logspace(-1, 6, 29).tolist())
    drift, reached = [], []
    for _, run in follow(task, vectors, options):
        points = np.concatenate([run.snapshots, run.vector[None]]).reshape(-1, 2, settings["dim"])
        drift.append(np.abs(np.linalg.norm(points, axis=2) - 1).max(axis=1))
        reached.append(run.time)
    return Measurement(
        checks=[
            at_most("loss against E[(f - f*)²]/2, relative to ρ²(n + k)", worst["loss"], bound=1e-14),
            at_most(
                "spherical gradient against the projected gradient of the expectation", worst["gradient"], bound=1e-14
            ),
            at_most("spherical gradient against the printed A - (AWᵀ∘I)W", worst["formula"], bound=1e-14),
            at_most("Riemannian Hessian against automatic differentiation", worst["hessian"], bound=1e-14),
            at_least("length of the flows", np.array(reached), bound=1e6),
            at_most("norms off 1 along them", np.concatenate(drift), bound=1e-13),
        ],
        measured={**worst, "norms off 1 at t = 10⁶": float(np.concatenate(drift).max())},
        notes=f"{len(reached)} flows of length 10⁶ in dimension {settings['dim']}, 29 snapshots each.",
    )


def copy_critical(settings: Settings, progress: Progress) -> Measurement:
    """Copies are critical, distinct copies are the global minimum, and what maximises Σ_j (w·v_j)^ρ."""
    rng = np.random.default_rng(1)
    steepest = 0.0
    for degree in settings["degrees"]:
        for _ in range(settings["samples"]):
            k = int(rng.integers(2, 6))
            n, d = int(rng.integers(1, k + 1)), k + int(rng.integers(0, 3))
            rows = np.eye(k, d)[rng.integers(0, k, size=n)] * rng.choice([-1.0, 1.0], size=(n, 1))
            task = Sphere(np.eye(k, d), n, activation=f"hermite:{degree}")
            steepest = max(steepest, float(np.linalg.norm(np.asarray(task.gradient(rows)))))
    gaps, frames, sampled = [], [], []
    for i, (n, k, d, degree) in enumerate(settings["sizes"]):
        progress(i / len(settings["sizes"]), f"n = {n}, k = {k}, d = {d}, ρ = {degree}")
        task = Sphere(np.eye(k, d), n, activation=f"hermite:{degree}")
        least = (k - n) / 2
        gaps.append(abs(float(task.loss(np.eye(n, d))) - least))
        vectors = task.flatten(starts.uniform_sphere(task, settings["seeds"]))
        found = [run.loss for _, run in follow(task, vectors, FlowOptions(snapshots=0, polish=False, stop=1e-8))]
        sampled.append(min(found) - least)
        if degree == 2:
            turned = [np.linalg.qr(rng.normal(size=(k, k)))[0][:n] @ np.eye(k, d) for _ in range(20)]
            frames += [abs(float(task.loss(w)) - least) for w in turned]
            frames += [float(np.linalg.norm(np.asarray(task.gradient(w)))) for w in turned]
    directions = unit_rows(rng, 200_000, 4)
    sums = {rho: float(np.sum(directions**rho, axis=1).max()) for rho in (3, 4, 6)}
    opposite = float(np.sum((-np.eye(4)[0]) ** 4))
    linear = Sphere(np.eye(3), 2, activation="hermite:1")
    return Measurement(
        checks=[
            at_most("gradient norm at copies, ρ ≥ 2", steepest, bound=1e-13),
            at_most("loss of distinct copies against (k - n)/2", gaps, bound=1e-14),
            at_least("lowest loss reached by the flow, above (k - n)/2", sampled, bound=-1e-12),
            at_most("ρ = 2: loss and gradient of orthonormal frames in the teachers' span", frames, bound=1e-13),
            at_most("Σ_j (w·v_j)^ρ on the sphere, ρ = 3, 4, 6, sampled", list(sums.values()), bound=1.0),
            close("Σ_j (-v_1·v_j)⁴", 1.0, opposite, 0.0),
        ],
        measured={"gradient norm at copies": steepest, "lowest loss above (k - n)/2": min(sampled)},
        printed=[
            holds(
                "Lemma B.1: only v_1 … v_k attain the maximum for ρ > 2 (ρ = 4)", opposite < 1, {"at -v_1": opposite}
            ),
            at_most(
                "Theorem 2.1 for every odd ρ: gradient norm at copies, ρ = 1, n = 2, k = 3",
                float(np.linalg.norm(np.asarray(linear.gradient(np.eye(2, 3))))),
                bound=1e-13,
            ),
        ],
        erratum_note=(
            "Lemma B.1: for even ρ the maximisers are ±v_j, not only v_j (and span ∩ sphere is meant where ∪ is "
            "printed). At ρ = 1, which is outside the paper's scope, copies of fewer students than teachers are not "
            "critical."
        ),
    )


def _search_zero(task: Sphere, start: np.ndarray) -> tuple[float, np.ndarray]:
    """The least ‖B‖ that Gauss-Newton reaches from a start, over unit rows, and where."""
    n, d = task.width, task.dim

    def residual(flat: np.ndarray) -> np.ndarray:
        rows = flat.reshape(n, d)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        v, p = np.asarray(task.teacher.incoming), task.degree - 1
        return ((rows @ rows.T) ** p @ rows - (rows @ v.T) ** p @ v).ravel()

    found = least_squares(residual, start.ravel(), xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=400)
    rows = found.x.reshape(n, d)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return float(np.linalg.norm(residual(rows))), rows


def euclid_nonzero(settings: Settings, progress: Progress) -> Measurement:
    """The smallest Euclidean gradient B for n < k, and where it is attained."""
    rng = np.random.default_rng(2)
    table: list[tuple[int, int, int, float, float]] = []
    labels: set[str] = set()
    at_copies, first_norm, second_norm = [], [], []
    for n, k, degree in progress.over(settings["sizes"], "n, k, ρ ="):
        d = k + 1
        task = Sphere(np.eye(k, d), n, activation=f"hermite:{degree}")
        at_copies.append(float(np.linalg.norm(np.asarray(task.euclidean_gradient(jnp.asarray(np.eye(n, d).ravel()))))))
        # The same for the expectation itself, whose gradient has no sphere in it at all.
        at_copies.append(float(np.linalg.norm(np.asarray(task.population.gradient(jnp.asarray(np.eye(n, d).ravel()))))))
        found = [_search_zero(task, unit_rows(rng, n, d)) for _ in range(settings["starts"])]
        zeros = [rows for norm, rows in found if norm < 1e-9]
        others = [norm for norm, _ in found if norm >= 1e-9]
        labels |= {task.structure(us.TwoLayer(rows, np.ones(n))).label for rows in zeros}
        table.append((n, k, degree, min(norm for norm, _ in found), min(others, default=math.nan)))
        rows = unit_rows(rng, 2000, n, d)
        gram, to_teachers = rows @ np.swapaxes(rows, 1, 2), rows[:, :, :k]
        first = np.linalg.norm(gram ** (degree - 1) @ rows, axis=2)
        first_norm.append(float(first.min()))
        second_norm.append(float(np.linalg.norm(to_teachers ** (degree - 1), axis=2).max()))
    least = min(row[3] for row in table)
    copies_only = bool(labels) and all(label.endswith("-copy") and "same" not in label for label in labels)
    return Measurement(
        checks=[
            at_most("‖A‖ at distinct copies, and the gradient of E[(f - f*)²] there", at_copies, bound=1e-13),
            at_least("row norms of (WWᵀ)^∘(ρ-1) W", first_norm, bound=1 - 1e-12),
            at_most("row norms of (WVᵀ)^∘(ρ-1) V", second_norm, bound=1 + 1e-12),
            holds(
                "every zero of B that the search found is a set of distinct copies (ρ ≥ 4)", copies_only, sorted(labels)
            ),
        ],
        measured={"smallest ‖B‖ found": least, "zeros of B": ", ".join(sorted(labels))},
        data={"table": np.array(table, float)},
        printed=[at_least("smallest ‖B‖ for n < k", least, bound=1e-6)],
        erratum_note=(
            "The lemma is false as printed: at distinct copies, n < k, B_i = w_i - v_i = 0. The proof shows ‖first "
            "row‖ ≥ 1 ≥ ‖second row‖ and overlooks that both are 1 there. What it does prove: for even ρ > 2, B = 0 "
            "exactly at distinct copies, up to signs."
        ),
    )


def quadratic(settings: Settings, progress: Progress) -> Measurement:
    """Appendix A: E[(mean H_2 difference)²] = constant + ½E[(mean quadratic difference)²], and the constant."""
    rng = np.random.default_rng(3)
    constants, on_sphere, pair = [], [], []
    for _ in progress.over(range(settings["samples"])):
        n, k, d = (int(x) for x in rng.integers(1, 6, size=3))
        w, v = rng.normal(size=(n, d)), rng.normal(size=(k, d))
        losses = []
        for activation in ("hermite:2", "quadratic"):
            teacher = us.Teacher(v, np.full(k, 1 / k), activation)
            losses.append(float(us.Population(teacher, n, outgoing=1 / n).loss(jnp.asarray(w.ravel()))))
        constants.append(losses[0] - losses[1] / 2)
        q11, q12, q22 = w[0] @ w[0], w[0] @ v[0], v[0] @ v[0]
        printed = 0.5 * q11 * q22 + q12**2 - q11 / 2 - q22 / 2 + 0.5
        length = math.sqrt(q11 * q22)
        exact = float(us.interaction("hermite:2", math.sqrt(q11), math.sqrt(q22), min(max(q12 / length, -1.0), 1.0)))
        pair.append(abs(exact - printed) / (1 + length**2))
        x, y = w[0] / math.sqrt(q11), v[0] / math.sqrt(q22)
        on_sphere.append(
            abs(float(us.interaction("hermite:2", 1.0, 1.0, float(np.clip(x @ y, -1.0, 1.0)))) - (x @ y) ** 2)
        )
    largest = float(np.abs(constants).max())
    return Measurement(
        checks=[
            at_most("|constant|, exact loss less half the quadratic loss, vectors of any norm", largest, bound=1e-11),
            at_most("g_2(w, v) against the printed formula, relative", pair, bound=1e-14),
            at_most("g_2 on the sphere against (w·v)²", on_sphere, bound=1e-14),
        ],
        measured={"constant": largest},
        printed=[close("constant as printed", 2.5, largest, 1e-9)],
        erratum_note=(
            "The constant is 0, not 5/2: the three ½ enter as ½ - 2·½ + ½, and the norms cancel. Plainly: H_2(x) = (x² "
            "- 1)/√2 and the two means of -1 cancel, so the losses differ by the factor ½ only."
        ),
    )


def summary_table(measurement: Measurement, figure: Any) -> None:
    """Smallest ‖B‖ found, by size: zero at copies, and the least value that is not zero."""
    rows = measurement.data["table"]
    axes = figure.subplots()
    names = [f"n={int(n)}, k={int(k)}, ρ={int(rho)}" for n, k, rho, *_ in rows]
    axes.semilogy(names, np.maximum(rows[:, 3], 1e-17), "o", label="least ‖B‖ found: distinct copies")
    axes.semilogy(names, rows[:, 4], "s", label="least local minimum with ‖B‖ > 0")
    axes.set(ylabel="‖B‖", title="The Euclidean gradient does vanish for n < k")
    axes.tick_params(axis="x", rotation=30)
    axes.legend()
