"""The claims of tight-balance: cheap ones in full, the building blocks of the dear ones, and what the figures need."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from cases import thorough_but
from understudy.papers import claims_of
from understudy.papers.claim import Progress
from understudy.papers.tight_balance import cone_geometry as split_cone
from understudy.papers.tight_balance.cone_starts import failures
from understudy.tasks.sphere import Sphere

IDS = "loss-gradient copy-critical euclid-nonzero toy-points angle nature plateau pairs double-pairs split-cone losses quadratic even-mnist even-control frames leaves-cone"
CLAIMS = {claim.id: claim for claim in claims_of("tight-balance")}


def test_every_claim_of_the_paper_is_there():
    assert " ".join(CLAIMS) == IDS


def test_the_ledger_needs_no_array_library():
    code = "import sys, understudy.papers.tight_balance; sys.exit('jax' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("name", "settings", "status"),
    thorough_but(
        [
            ("angle", {"degrees": [4, 6, 8]}, "reproduced"),
            ("quadratic", {"samples": 1}, "erratum"),
            ("euclid-nonzero", {"sizes": [[1, 2, 4]], "starts": 8}, "erratum"),
            ("toy-points", {"degrees": [4, 6]}, "erratum"),
            ("losses", {"seeds": 12}, "reproduced"),
        ],
        ["angle", "quadratic", "euclid-nonzero"],
    ),
)
def test_cheap_claims_and_their_figures(name, settings, status):
    claim = CLAIMS[name]
    found = claim.measure(settings, Progress())
    assert found.status == status, [c for c in found.checks if not c.ok]
    if claim.figure is not None:
        claim.figure(found, Figure(layout="constrained"))


def test_lemma_32_has_a_counterexample():
    counter = CLAIMS["split-cone"].full["counterexample"]
    n, k, degree = counter["n"], counter["k"], counter["degree"]
    start = split_cone.worst_start(degree, n, k, counter["over"] * split_cone.bound(degree), counter["lean"])
    assert np.diagonal(start).min() > split_cone.ROOT_HALF + split_cone.bound(degree)
    task = Sphere(np.eye(k), n, activation=f"hermite:{degree}", repulsion=1 / n)
    assert failures(task, start[None]).tolist() == [True]
