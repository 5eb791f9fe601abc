"""Claims that one small computation decides: what holds passes, what is printed fails, and a changed case tells them apart."""

import numpy as np
import pytest

from understudy.papers import Progress, find_claims
from understudy.papers.few_neurons import unequal

SMALL = {
    "few-neurons/relu-points": 1,
    "few-neurons/softplus-proof": 2,
    "few-neurons/unequal-correlations": 1,
    "alignment/both-layers": 0,
    "alignment/near-opposite": 1,
    "tight-balance/frames": 1,
    "tight-balance/leaves-cone": 0,
}


def measure(name, **changes):
    (claim,) = find_claims(*name.split("/"))
    return claim.measure({**claim.quick, **changes}, Progress())


@pytest.mark.parametrize(("name", "wrong"), SMALL.items())
def test_what_holds_passes_and_what_is_printed_fails(name, wrong):
    found = measure(name)
    assert all(check.ok for check in found.checks)
    assert [check.ok for check in found.printed] == [False] * wrong


def test_lemma_5_holds_where_the_nodes_are_further_apart():
    """Without a bias both nodes have it in common, and the lemma's first alternative holds."""
    assert all(check.ok for check in measure("alignment/near-opposite", bias=0.0).printed)


def test_a_student_far_from_the_boundary_stays_in_its_cone():
    assert not measure("tight-balance/leaves-cone", margin=2.0).checks[-1].ok


def test_the_frames_must_be_orthonormal(monkeypatch):
    monkeypatch.setattr(np.linalg, "qr", lambda a: (a / np.linalg.norm(a, axis=1, keepdims=True), None))
    assert not measure("tight-balance/frames").checks[0].ok


def test_an_unbalanced_start_does_not_take_the_time_of_eq_10(monkeypatch):
    monkeypatch.setattr(
        "understudy.papers.alignment.turning.STARTS", {"balanced": 1.1, "v₀ = 2‖w₀‖": 2.0, "v₀ = ½‖w₀‖": 0.5}
    )
    assert not measure("alignment/both-layers").checks[1].ok


def test_one_neuron_has_critical_points_with_unequal_correlations():
    """exp(βx), two teachers: w = (3/7, 4/7) at β² = 7 ln(4/3); beside the point the gradient does not vanish."""
    b, w, a = unequal.critical_point(0.6)
    assert b == pytest.approx(7 * np.log(4 / 3))
    assert w == pytest.approx([3 / 7, 4 / 7])
    assert np.abs(unequal.gradient(b, w, a, 60)).max() <= 1e-13
    assert np.abs(unequal.gradient(b, w + np.array([0.01, 0]), a, 60)).max() >= 1e-3
    assert np.abs(unequal.gradient(1.01 * b, w, a, 60)).max() >= 1e-3
