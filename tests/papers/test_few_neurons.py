"""The paper's claims: every row there, and the cheap ones measured; a deliberately wrong value is noticed."""

import numpy as np
import pytest

from understudy.papers import Progress, claims_of, find_claims

ROWS = {
    "one-neuron", "splitting", "inertia", "scenarios", "multi-output", "unequal-correlations", "bounds", "four-minima",
    "spectrum-mu", "destinations", "toy-infinity", "growing", "relu-points", "softplus-proof",
    "sampled-fits", "sampled-destinations", "potentials",
}  # fmt: skip


def measured(name, **changes):
    (claim,) = find_claims("few-neurons", name)
    return claim, claim.measure({**claim.quick, **changes}, Progress())


def test_every_claim_of_the_paper_is_there():
    assert {claim.id for claim in claims_of("few-neurons")} == ROWS


def test_samples_on_a_lattice_keep_means_of_smooth_functions():
    from understudy.papers.few_neurons.samples import on_lattice

    x = np.random.default_rng(0).normal(size=(3000, 2))
    points, weights = on_lattice(x)
    w = np.array([[1.0, 0.4], [-0.7, 0.9], [1.5, -1.0]])
    values = [np.sum(np.logaddexp(0.0, z @ w.T), axis=1) ** 2 for z in (x, points)]
    assert len(points) < 2600
    assert abs(weights.sum() - 1) < 1e-12
    assert abs(weights @ values[1] / values[0].mean() - 1) < 1e-8


@pytest.mark.thorough
def test_the_model_of_a_minimum_at_infinity_is_misprinted():
    claim, measurement = measured("toy-infinity", time=1e8, mus=[-0.5, 0.4, 1.5])
    assert [c.name for c in measurement.checks if not c.ok] == []
    assert [c.ok for c in measurement.printed] == [False, False, False]
    from matplotlib.figure import Figure

    figure = Figure()
    claim.figure(measurement, figure)
    assert len(figure.axes) == 4


@pytest.mark.thorough
def test_inertia_on_a_few_points_and_the_blocks_that_are_not_zero():
    shapes = [{"kind": "data", "width": 2, "outputs": [], "bias": True}]
    _, measurement = measured("inertia", points=3, shapes=shapes)
    assert measurement.status == "erratum"
    assert measurement.measured["wrong"] == 0


def test_a_wrong_prediction_is_noticed(monkeypatch):
    from understudy.points import splitting

    original = splitting.SplitMatrices.inertia
    monkeypatch.setattr(splitting.SplitMatrices, "inertia", lambda self, mu, t=None: original(self, mu + 5, t))
    shapes = [{"kind": "data", "width": 2, "outputs": [], "bias": True}]
    _, measurement = measured("inertia", points=3, shapes=shapes)
    assert measurement.status == "differs"


def test_classes_of_four_minima_are_told_apart():
    import xarray as xr

    from understudy.papers.few_neurons.four import classify

    rng = np.random.default_rng(0)
    w = rng.normal(size=(7, 4, 2))
    w[3, 1] = w[3, 2]
    rows = xr.Dataset(
        {
            "loss": ("seed", [1e-30, 3.302e-6, 3.2745e-6, 4e-5, 7e-6, 3.302e-6, 2e-5]),
            "kind": ("seed", ["minimum"] * 5 + ["strict saddle", "diverging"]),
            "escape": ("seed", [""] * 6 + ["weights grow"]),
            "incoming": (("seed", "student", "dim"), w),
        }
    )
    names = list(classify(rows))
    assert names[:4] == ["global", "local-I", "local-II", "symmetry-induced"]
    assert names[4].startswith("other: minimum")
    assert names[5].startswith("other: strict saddle")
    assert names[6] == "infinity: weights grow"


@pytest.mark.parametrize("name", ["four-minima", "growing", "destinations"])
def test_full_settings_are_at_the_papers_scale(name):
    (claim,) = find_claims("few-neurons", name)
    assert {"four-minima": ("seeds", 1000), "growing": ("width", 6), "destinations": ("neurons", [0, 1, 2, 3])}[
        name
    ] == (next((k, claim.full[k]) for k in ("seeds", "width", "neurons") if k in claim.full))


def derivatives_along(task, point, direction):
    """Second and third derivative of the loss along a direction."""
    import jax

    second = jax.grad(jax.grad(lambda t: task.loss(point + t * direction)))
    return float(second(0.0)), float(jax.grad(second)(0.0))


@pytest.mark.thorough
def test_why_a_limit_at_infinity_is_a_non_strict_saddle():
    """Opposite neurons w' = -w beside a tangent b ∥ w: σ(z) - σ(-z) = z foretells the Hessian's null vector."""
    import jax.numpy as jnp

    import understudy as us
    from understudy.papers.few_neurons.four import teacher
    from understudy.points.infinity import Tangent
    from understudy.points.plateaus import nearest_critical
    from understudy.tasks import on_grid

    w = np.array([[0.8292, 0.3435], [-0.1297, -0.9857], [-0.7887, 0.6052], [-0.8292, -0.3435]])
    start = Tangent(us.TwoLayer(w, [1.9165, 1.3467, 1.3467, -0.6093]), jnp.array([[0.1424, 0.0590]]), (0,))
    grid = on_grid(teacher(), 5)
    task = us.Empirical(start, grid.inputs, grid.targets, activation=grid.activation, weights=grid.weights)
    end, norm = nearest_critical(task, task.flatten(start), steps=150)
    limit = task.unflatten(jnp.asarray(end))
    found = us.certify(task, end)
    assert (norm < 1e-15, found.kind != "minimum", found.zeros) == (True, True, 1)
    assert round(found.higher_order.order) == 3  # measured at a distance at which the next power counts too
    w, a, b = (np.asarray(x) for x in (limit.network.incoming, limit.network.outgoing, limit.slopes[0]))
    assert np.linalg.norm(w[0] + w[3]) < 1e-6
    assert abs(b[0] * w[0, 1] - b[1] * w[0, 0]) < 1e-6
    turned, weights = np.zeros((4, 2)), np.array([-a[3], 0, 0, a[3]])
    turned[3] = w[0]
    way = np.asarray(task.flatten(Tangent(us.TwoLayer(turned, weights), jnp.asarray(a[3] * w[:1]), (0,))))
    _, vectors = np.linalg.eigh(np.asarray(task.hessian(end)))
    null = vectors[:, 0]
    assert abs(null @ way) / np.linalg.norm(way) > 1 - 1e-11
    # Without curvature along its only zero mode, a third derivative there makes the point a saddle.
    second, third = derivatives_along(task, end, null)
    assert (abs(second) < 1e-12, abs(third) > 1e-6) == (True, True)
