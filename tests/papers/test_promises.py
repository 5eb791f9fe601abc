"""The promises: a few points and the reference itself measured, and a deliberate breach of each is noticed."""

import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.papers import Progress, claims_of, find_claims
from understudy.papers.promises import certificates, kill_soak, natures, natures_claim
from understudy.papers.promises.comparison import outcome
from understudy.papers.promises.kinds import KINDS
from understudy.papers.promises.plain_functions import coordinates, polynomial
from understudy.papers.promises.plain_losses import PlainPopulation, erf_pairs, plane_grid
from understudy.papers.promises.reference import RADII, derivatives, judge, told


def test_all_promises_are_claims_at_the_asked_scale():
    assert [claim.id for claim in claims_of("promises")] == ["natures", "certificates", "kill-soak", "proofs"]
    assert set(certificates.NAMES) == set(KINDS)
    assert set(certificates.QUICK) < set(KINDS)
    (points,) = find_claims("promises", "certificates")
    (kills,) = find_claims("promises", "kill-soak")
    assert (points.full["points"], set(points.full["kinds"])) == (1000, set(KINDS))
    assert kills.full["kills"] == 20


# -- the reference -----------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_two_plain_losses_of_one_network_agree():
    """Pair interactions against the trapezoidal rule over inputs."""
    v, b = np.array([[0.6, 0.8], [1.0, 0.0]]), np.array([[1.0], [-0.5]])
    loss = PlainPopulation(jnp.asarray(v), jnp.asarray(b), jnp.eye(2), None, erf_pairs, 2)
    theta = np.array([0.3, -0.7, 1.2, 0.9, 0.1, -0.4])
    points, weights = plane_grid()
    rows = theta.reshape(2, 3)
    erf = us.activations.get("erf")
    student = np.asarray(erf(points @ rows[:, :2].T)) @ rows[:, 2]
    gap = student - (np.asarray(erf(points @ v.T)) @ b)[:, 0]
    assert float(loss(jnp.asarray(theta))) == pytest.approx(weights @ gap**2, abs=1e-13)
    assert np.sum(weights) == pytest.approx(1, abs=1e-14)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("function", "kind", "inertia"),
    [
        (lambda x: x[0] ** 2 + x[1] ** 2 - x[2] ** 2, "strict saddle", (1, 0, 2)),
        (lambda x: x[0] ** 2 + 3 * x[1] ** 2 + x[2] ** 2, "minimum", (0, 0, 3)),
        (lambda x: x[0] ** 2 + x[1] ** 2 - x[2] ** 3, "non-strict saddle", (0, 1, 2)),
        (lambda x: x[0] ** 2 + (x[1] - x[2] ** 2) ** 2, "minimum", (0, 1, 2)),
        (lambda x: x[0] ** 2 + (x[1] - x[2] ** 2) * (x[1] - 3 * x[2] ** 2), "non-strict saddle", (0, 1, 2)),
        (lambda x: x[0] ** 2 + x[1] ** 2 - 1e-7 * x[2] ** 4, "non-strict saddle", (0, 1, 2)),
        (lambda x: x[0] ** 2 + x[1] ** 2 - 3e-9 * x[2] ** 2 + x[2] ** 3, "saddle", (1, 0, 2)),
        (lambda x: x[0] ** 2 + x[1] ** 2 - 3e-11 * x[2] ** 2, "saddle", (1, 0, 2)),
        (lambda x: x[0] ** 2 + x[1] ** 2 + 3e-9 * x[2] ** 2 + x[2] ** 3, "unclear", (0, 0, 3)),
        (lambda x: x[0] ** 2 + x[1] ** 2 - 3e-13 * x[2] ** 2 + x[2] ** 4, "unclear", (1, 0, 2)),
        (lambda x: x[0] ** 2 + 3e-8 * x[1] ** 2 + x[1] ** 3 - 2e-13 * x[2] ** 2, "unclear", (1, 0, 2)),
        (lambda x: x[0] ** 2 + 3e-8 * x[1] ** 2 + x[1] ** 3 - 2e-8 * x[2] ** 2, "saddle", (1, 0, 2)),
    ],
)
def test_the_reference_knows_points_of_which_the_truth_is_known(function, kind, inertia):
    gradient, hessian = (np.asarray(x)[0] for x in derivatives(function, jnp.zeros((1, 3))))
    found = judge(function, np.zeros(3), gradient, hessian, np.random.default_rng(0))
    assert (found.kind, found.inertia) == (kind, inertia)


@pytest.mark.thorough
def test_a_narrow_minimum_is_a_minimum():
    """Where a kink lets the loss fall from a distance of 5e-4 on, as where an outgoing weight of that size changes its sign."""

    def function(x):
        return x[0] ** 2 + x[1] ** 2 - 10 * jnp.maximum(x[2] - 5e-4, 0.0) ** 3

    gradient, hessian = (np.asarray(x)[0] for x in derivatives(function, jnp.zeros((1, 3))))
    found = judge(function, np.zeros(3), gradient, hessian, np.random.default_rng(0), analytic=False)
    assert (found.kind, found.inertia) == ("minimum", (0, 1, 2))
    assert sum(fall > 1e-13 for fall in found.falls) == 5


@pytest.mark.thorough
def test_a_minimum_may_be_as_narrow_as_its_least_weight():
    """All are cubic as far as the balls go; at x₂ = 1e-4 a weight of that size could still change its sign."""
    for rest, least, kind in (
        (1.0, 0.0, "non-strict saddle"),
        (1.0, 1e-4, "unclear"),
        (1e-31, 1e-33, "non-strict saddle"),
    ):
        point = np.array([rest, rest, least])

        def function(x, point=point):
            y = x - point
            return y[0] ** 2 + y[1] ** 2 - y[2] ** 3

        gradient, hessian = (np.asarray(x)[0] for x in derivatives(function, jnp.asarray(point)[None]))
        assert judge(function, point, gradient, hessian, np.random.default_rng(0)).kind == kind


@pytest.mark.thorough
@pytest.mark.parametrize(("aside", "kind"), [(1e-9, "unclear"), (8e-9, "saddle")])
def test_a_minimum_may_end_where_a_tiny_weight_is_zero(aside, kind):
    """x₀² + a x₂² at a = 4e-9: a minimum on x₂ = 0, next to which one of two small eigenvalues is negative."""

    def function(x):
        return x[0] ** 2 + x[1] * x[2] ** 2

    point = np.array([0.0, 4e-9, aside])
    gradient, hessian = (np.asarray(x)[0] for x in derivatives(function, jnp.asarray(point)[None]))
    found = judge(function, point, gradient, hessian, np.random.default_rng(0))
    assert (found.kind, found.inertia) == (kind, (1, 0, 2))


def test_a_faint_cubic_makes_a_saddle():
    """x² + 1e-10 y z² + 1000 (y² + z²)²: within any ball it falls by less than the rounding of losses."""

    def function(x):
        return x[0] ** 2 + 1e-10 * x[1] * x[2] ** 2 + 1e3 * (x[1] ** 2 + x[2] ** 2) ** 2

    point = np.zeros(3)
    gradient, hessian = (np.asarray(x)[0] for x in derivatives(function, jnp.asarray(point)[None]))
    assert judge(function, point, gradient, hessian, np.random.default_rng(0)).kind == "non-strict saddle"


def test_a_way_down_at_a_distance_is_no_saddle_here():
    noise = np.full(len(RADII), 1e-13)
    assert told(np.array([1e-4, 3e-6, 2e-8, 0.0, 0.0, 0.0]), noise) == "minimum"
    assert told(np.array(RADII) ** 6, noise) == "non-strict saddle"
    assert told(np.array([0.0, 1e-6, 0.0, 0.0, 0.0, 0.0]), noise) == "unclear"


def test_no_fall_above_rounding_is_a_minimum_unless_it_goes_like_a_power():
    noise = np.full(len(RADII), 1e-13)
    assert told(np.full(len(RADII), 2e-16), noise) == "minimum"
    assert told(1e-12 * np.array(RADII), noise) == "minimum"
    assert told(1e-11 * np.array(RADII) ** 3, noise) == "unclear"


# -- natures -----------------------------------------------------------------------------------------------------------


def test_natures_are_drawn_by_a_fixed_seed_and_cover_every_kind():
    first, second = ([(k.kind, k.words, k.nature) for k in natures.functions(3, 1)] for _ in range(2))
    assert first == second
    kinds = {kind for kind, _, _ in first}
    assert set(natures.FAMILIES) < kinds
    assert {"named functions", "far plateaus"} < kinds
    full = natures_claim.CLAIM.full
    families, units = len(natures.FAMILIES), max(1, full["functions"] // 4)
    assert families * (full["functions"] + units) + 2 * full["functions"] + 6 * full["points"] >= full["least"]


def test_polynomials_are_what_their_terms_say():
    """At zero in straight coordinates, against the terms written out."""
    place = coordinates(np.random.default_rng(0), 3, bent=False, at_zero=True)
    task = polynomial([(2.0, (2, 0, 1)), (-0.5, (0, 3))], **place)
    x = np.array([0.3, -0.7, 0.2])
    y = np.asarray(place["matrix"]) @ x
    assert float(task.loss(x)) == pytest.approx(2 * y[0] ** 2 * y[2] - 0.5 * y[1] ** 3, abs=1e-15)


@pytest.mark.thorough
def test_no_nature_is_mistaken_and_a_breach_is_noticed(monkeypatch):
    settings = {"functions": 1, "points": 1, "parts": 8, "part": 0, "seed": 0}
    rows = natures_claim.nature_cell(settings)
    assert "wrong" not in rows["outcome"].values
    from understudy import points
    from understudy.points import certificate

    monkeypatch.setattr(points, "certify", _never_a_saddle(certificate.certify))
    assert "wrong" in natures_claim.nature_cell(settings)["outcome"].values


# -- certificates ------------------------------------------------------------------------------------------------------


def measured(**changes):
    (claim,) = find_claims("promises", "certificates")
    return claim, claim.measure({**claim.quick, **changes}, Progress())


@pytest.mark.thorough
def test_a_few_points_and_a_certificate_that_calls_everything_a_minimum(monkeypatch):
    claim, measurement = measured(points=25, kinds=["sphere, squared"])
    assert [c.name for c in measurement.checks if not c.ok] == []
    from matplotlib.figure import Figure

    figure = Figure()
    claim.figure(measurement, figure)
    assert len(figure.axes) == 2
    from understudy import points
    from understudy.points import certificate

    monkeypatch.setattr(points, "certify", _never_a_saddle(certificate.certify))
    _, measurement = measured(points=25, kinds=["sphere, squared"])
    assert measurement.status == "differs"
    assert measurement.measured["wrong verdicts"] > 0
    assert "minimum for strict saddle" in measurement.notes


def _never_a_saddle(certify):
    from dataclasses import replace

    return lambda task, point: replace(certify(task, point), kind="minimum")


def test_a_wrong_inertia_is_wrong_even_if_the_verdict_is_right():
    row = {"verdict": "strict saddle", "truth": "strict saddle", "inertia": (1, 0, 2), "unclear_spectrum": False}
    assert outcome({**row, "true_inertia": (1, 0, 2)}) == "right"
    assert outcome({**row, "true_inertia": (1, 1, 1)}) == "wrong"
    assert outcome({**row, "true_inertia": (1, 0, 2), "verdict": "unconverged"}) == "undecided"


# -- kills -------------------------------------------------------------------------------------------------------------

WRITER = """
import pathlib, sys, time
import numpy as np, xarray as xr
from understudy.store import Store
for cell in range(int(sys.argv[2])):
    configuration = {"kind": "sweep-fit", "cell": cell}
    if Store(sys.argv[1]).load(configuration) is None:
        Store(sys.argv[1]).save(configuration, xr.Dataset({"x": ("i", np.arange(50.0) + cell)}))
        if "--careless" in sys.argv:
            pathlib.Path(sys.argv[1], "sweep-fit-torn.nc").write_bytes(b"half a file")
        time.sleep(0.02)
"""
SETTINGS = {"kills": 3, "cells": 60, "seeds": 1, "workers": 1, "most_cells": 6, "most_delay": 0.1, "seed": 0}


def soak(monkeypatch, *extra):
    """The soak of a process that writes cells without computing anything."""

    def command(settings, directory):
        return [sys.executable, "-c", WRITER, str(directory), str(settings["cells"]), *extra]

    monkeypatch.setattr(kill_soak, "command", command)
    return kill_soak.CLAIM.measure(SETTINGS, Progress())


@pytest.mark.thorough
def test_kills_lose_nothing_and_the_figure_shows_them(monkeypatch):
    from matplotlib.figure import Figure

    measurement = soak(monkeypatch)
    assert [(c.name, c.measured) for c in measurement.checks if not c.ok] == []
    assert measurement.measured["cells"] == 60
    figure = Figure()
    kill_soak.CLAIM.figure(measurement, figure)
    assert len(figure.axes[0].lines) == 4


@pytest.mark.thorough
def test_a_torn_file_is_noticed(monkeypatch):
    measurement = soak(monkeypatch, "--careless")
    assert measurement.status == "differs"
    assert measurement.measured["finished cells lost"] > 0


def test_the_sweep_is_a_command_that_exists(tmp_path):
    words = kill_soak.command({**SETTINGS, "cells": 2}, tmp_path)
    done = subprocess.run([*words[:4], "--help"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert all(word in done.stdout for word in words if word.startswith("--"))
