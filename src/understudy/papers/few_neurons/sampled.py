"""Claim `sampled-fits`: Figure 2 as the paper made it, by flows on 10⁵ samples from ten seeds."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from understudy.papers.cells import compute
from understudy.papers.check import at_least, at_most, equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement


def _outputs(name: str, inputs: np.ndarray) -> np.ndarray:
    """Of teachers along the axes, Σ_j σ(x_j)."""
    from understudy import activations

    return np.asarray(activations.get(name)(inputs)).sum(axis=1)


def ends_cell(cell: Mapping[str, Any]) -> xr.Dataset:
    """Fit a range of seeds on one data set: correlations with the teachers, norm and outgoing weight of each end.

    Signs are taken out, because tanh does not determine them.
    """
    import understudy as us
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    name, k, samples = cell["activation"], cell["teachers"], cell["samples"]
    x = np.random.default_rng([k, 10]).normal(size=(samples, k))
    y = _outputs(name, x)
    task = us.Empirical(us.TwoLayer(np.zeros((1, k)), np.zeros(1)), x, y, activation=name)
    rows, kinds = [], list[str]()
    for run in us.fit(task, list(range(*cell["seeds"])), jobs=1):
        w, a = np.asarray(run.parameters.incoming)[0], float(np.asarray(run.parameters.outgoing).reshape(-1)[0])
        sign = np.sign(a) if name == "tanh" else 1.0
        norm = float(np.linalg.norm(w))
        rows.append([*(sign * w / norm), norm, sign * a])
        kinds.append(run.certificate.kind)
    return xr.Dataset({"end": (("seed", "number"), np.array(rows)), "kind": ("seed", kinds)})


def _errors(name: str, k: int, samples: int) -> tuple[np.ndarray, float]:
    """The population's best neuron (norm, outgoing) and the standard error of a fitted norm times outgoing weight.

    The fit is an M-estimator: its covariance is H⁻¹ Cov(∇ℓ) H⁻¹/N, with the Hessian H of the population loss and the
    covariance of the gradients of single samples, here over fresh samples.
    """
    import understudy as us
    from understudy import activations
    from understudy.gaussian.hermite import derivatives
    from understudy.theory.one_neuron import one_neuron

    best = one_neuron(name, k)
    teacher = us.Teacher.orthonormal(k, dim=k, activation=name)
    w = np.full(k, best.norm / np.sqrt(k))
    point = us.TwoLayer(w[None], [best.outgoing])
    population = us.Population(teacher, width=1)
    hessian = np.asarray(population.hessian(population.flatten(point)))
    x = np.random.default_rng([k, 11]).normal(size=(20_000, k))
    value, slope = derivatives(activations.get(name), x @ w, 2)
    residual = best.outgoing * value - _outputs(name, x)
    gradients = 2 * residual[:, None] * np.concatenate([best.outgoing * slope[:, None] * x, value[:, None]], axis=1)
    inverse = np.linalg.inv(hessian)
    covariance = inverse @ np.cov(gradients.T) @ inverse / samples
    along = np.append(best.outgoing * w / best.norm, best.norm)  # the gradient of ‖w‖a
    return np.array([best.norm, best.outgoing]), float(np.sqrt(along @ covariance @ along))


def _measure(settings: Settings, progress: Progress) -> Measurement:
    cases = [(name, k) for name in settings["activations"] for k in settings["teachers"]]
    shared = {"kind": "sampled-fits", "samples": settings["samples"], "seeds": [0, settings["seeds"]]}
    cells = [{**shared, "activation": name, "teachers": k} for name, k in cases]
    found = compute(ends_cell, cells, progress, keep=settings["keep"])
    spreads, unequal, distances, shown = [], [], [], {}
    kinds: dict[str, int] = {"minimum": 0}
    norms: list[float] = []
    outgoing: dict[str, list[float]] = {name: [] for name in settings["activations"]}
    for (name, k), part in zip(cases, found, strict=True):
        rows = part["end"].values
        for verdict in part["kind"].values.astype(str):
            kinds[verdict] = kinds.get(verdict, 0) + 1
        spreads.append(np.ptp(rows, axis=0).max())
        unequal.append(np.abs(rows[0, :k] * np.sqrt(k) - 1).max())
        best, error = _errors(name, k, settings["samples"])
        magnitude = float(rows[0, k] * rows[0, k + 1])
        distances.append(abs(magnitude - best[0] * best[1]) / error)
        norms.append(rows[0, k] * np.sqrt(k))
        outgoing[name].append(rows[0, k + 1] / k)
        shown[f"{name}, k = {k}"] = f"‖w‖a/√k = {magnitude / np.sqrt(k):.5f} ± {error / np.sqrt(k):.5f}"
    root = np.sqrt(settings["samples"])
    checks: list[Any] = [
        equal("ends that are minima", len(cases) * settings["seeds"], kinds["minimum"]),
        at_most("seeds of one data set differ by", spreads, bound=1e-7),
        at_most("correlations times √k less 1, in units of 1/√N", np.array(unequal) * root, bound=20.0),
        at_most("‖w‖a: distance from the population's solution, in standard errors", distances, bound=5.0),
        at_most("(b) ‖w‖√k", norms, bound=1.0),
    ]
    for name in ("softplus", "tanh"):
        if name in outgoing:
            checks.append(at_least(f"(c) {name}: a/k", outgoing[name], bound=1.0))
    if "sigmoid" in outgoing:
        checks.append(at_most("(c) sigmoid: |a/k - 1|", np.abs(np.array(outgoing["sigmoid"]) - 1), bound=0.01))
    return Measurement(checks, {"verdicts": kinds, **shown})


CLAIM = Claim(
    paper="few-neurons",
    id="sampled-fits",
    where="Fig. 2",
    statement=(
        "One neuron trained on 10⁵ inputs for k = 2 … 10 teachers (softplus, sigmoid, tanh): all ten seeds converge to "
        "one solution with equal similarities 1/√k, up to the sign for tanh; ‖w‖ < 1/√k; a is larger than k for "
        "softplus and tanh and k for sigmoid; ‖w‖a is √k for softplus."
    ),
    paper_value="10 of 10 seeds at one solution; ‖w‖a = √k (softplus), a = k (sigmoid)",
    measured_by=(
        "Gradient flow of the empirical loss to certified points, with the standard errors of an M-estimator around the "
        "exact population solution."
    ),
    tolerance="5 standard errors; correlations within 20/√N; sigmoid's a/k within 1 %",
    tolerance_reason="One data set per k: its solution differs from the population's by its sampling error.",
    quick={"activations": ["sigmoid"], "teachers": [2], "samples": 10_000, "seeds": 2, "keep": False},
    full={
        "activations": ["softplus", "sigmoid", "tanh"],
        "teachers": list(range(2, 11)),
        "samples": 100_000,
        "seeds": 10,
        "keep": True,
    },
    measure=_measure,
)
