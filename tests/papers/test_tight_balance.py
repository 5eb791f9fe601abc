"""The claims of tight-balance: cheap ones in full, the building blocks of the dear ones, and what the figures need."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from understudy.papers import claims_of
from understudy.papers.claim import Progress
from understudy.papers.tight_balance import split_cone
from understudy.papers.tight_balance.landscape import orbit_key
from understudy.papers.tight_balance.meeting import Meeting, distance_to_tight_balance, meet
from understudy.tasks.sphere import Sphere
from understudy.theory import tight_balance as theory

IDS = "loss-gradient copy-critical euclid-nonzero toy-points angle nature plateau pairs split-cone losses quadratic even-mnist"
CLAIMS = {claim.id: claim for claim in claims_of("tight-balance")}


def test_every_row_is_there():
    assert " ".join(CLAIMS) == IDS


def test_the_ledger_needs_no_array_library():
    code = "import sys, understudy.papers.tight_balance; sys.exit('jax' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("name", "settings", "status"),
    [
        ("angle", {"degrees": [4, 6, 8]}, "reproduced"),
        ("quadratic", {"samples": 1}, "erratum"),
        ("euclid-nonzero", {"sizes": [[1, 2, 4]], "starts": 8}, "erratum"),
        ("toy-points", {"degrees": [4, 6]}, "erratum"),
        ("losses", {"seeds": 12}, "reproduced"),
    ],
)
def test_cheap_claims_and_their_figures(name, settings, status):
    claim = CLAIMS[name]
    found = claim.measure(settings, Progress())
    assert found.status == status, [c for c in found.checks if not c.ok]
    if claim.figure is not None:
        claim.figure(found, Figure(layout="constrained"))


def test_distance_to_tight_balance():
    rows = theory.tight_pairs(2, 2, 3, 4)
    moves = [
        rows,
        rows[::-1],
        -rows,
        rows * np.array([1.0, -1.0, 1.0]),
        rows[:, [1, 0, 2]],
        rows * np.array([[1.0], [-1.0]]),
    ]
    np.testing.assert_allclose(distance_to_tight_balance(np.stack(moves), 4), 0, atol=3e-8)  # √ of rounding
    copies = np.eye(2, 3)
    brute = min(
        np.linalg.norm(copies - signs * option)
        for option in (rows, rows[::-1], rows[:, [1, 0, 2]], rows[::-1][:, [1, 0, 2]])
        for signs in ([[1], [1]], [[1], [-1]], [[-1], [1]], [[-1], [-1]])
    )
    assert distance_to_tight_balance(copies, 4) == pytest.approx(brute, abs=1e-12)


def test_meeting_counts_and_interval():
    found = meet(2, 40, snapshots=60)
    assert found.runs == 40
    assert 0 < found.met[0] <= found.met[1] <= found.met[2] < 40
    low, high = Meeting(2, 1000, (0, 132, 0), 0, 0).interval()
    # Clopper and Pearson 1934, by the Beta quantiles.
    from scipy.stats import beta

    assert (low, high) == pytest.approx((beta.ppf(0.025, 132, 869), beta.ppf(0.975, 133, 868)), abs=1e-9)


def test_orbits():
    rows = theory.tight_pairs(2, 2, 2, 4)
    assert orbit_key(rows) == orbit_key(-rows[::-1]) == orbit_key(rows[:, ::-1]) == orbit_key(rows * [1.0, -1.0])
    assert orbit_key(rows) != orbit_key(np.eye(2))


@pytest.mark.parametrize(("degree", "n", "k"), [(4, 3, 3), (6, 6, 6), (8, 5, 6)])
def test_velocity_on_the_edge_of_a_cone(degree, n, k):
    """Against the task's own gradient, and zero at the threshold, where pushes and attraction balance."""
    rows = split_cone.worst_start(degree, n, k, 0.01)
    task = Sphere(np.eye(k), n, activation=f"hermite:{degree}", repulsion=1 / n)
    slope = np.asarray(task.gradient(rows)).reshape(n, k)[0, 0]
    assert split_cone.velocity(rows, degree) == pytest.approx(-slope / degree, abs=1e-15)
    assert np.abs(np.linalg.norm(rows, axis=1) - 1).max() < 1e-15
    share = (n - 2 if k == n else n - 1) / n
    balanced = split_cone.worst_start(degree, n, k, split_cone.leaving_threshold(degree, share))
    assert abs(split_cone.velocity(balanced, degree)) < 1e-15


def test_into_cones_keeps_rows_unit_and_inside():
    rows = np.random.default_rng(0).normal(size=(50, 3, 3))
    moved = split_cone.into_cones(rows, np.full(50, 0.72))
    assert np.abs(np.linalg.norm(moved, axis=2) - 1).max() < 1e-14
    assert np.diagonal(moved, axis1=1, axis2=2).min() >= 0.72


def test_lemma_32_has_a_counterexample():
    counter = CLAIMS["split-cone"].full["counterexample"]
    n, k, degree = counter["n"], counter["k"], counter["degree"]
    start = split_cone.worst_start(degree, n, k, counter["over"] * split_cone.bound(degree), counter["lean"])
    assert np.diagonal(start).min() > split_cone.ROOT_HALF + split_cone.bound(degree)
    task = Sphere(np.eye(k), n, activation=f"hermite:{degree}", repulsion=1 / n)
    assert split_cone.failures(task, start[None]).tolist() == [True]
