"""Copies of a ReLU student that only the kink of their interaction holds together."""

import numpy as np
import pytest

import understudy as us

TASK = us.Population(us.Teacher.orthonormal(3, dim=4, activation="erf"), 2, activation="relu")
LENGTH, WEIGHT = 0.5736633620, -0.9834854734
"""‖w‖/√3 and a of the one ReLU neuron that fits three orthonormal erf teachers best, to ten digits."""


def copies(share: float, angle: float = 0.0) -> us.TwoLayer:
    """The neuron as two copies with `share` and 1 - share of its weight, turned apart by `angle`."""
    way = -LENGTH * np.array([1.0, 1.0, 1.0, 0.0])
    aside = LENGTH * np.sqrt(3) * angle * np.array([0.0, 0.0, 0.0, 1.0])
    return us.TwoLayer([way + aside * (1 - share), way - aside * share], [share * WEIGHT, (1 - share) * WEIGHT])


def polished(share: float) -> np.ndarray:
    """Newton's method for the length and the weight, which ten digits leave at a gradient of 1e-10."""
    vector = np.asarray(TASK.flatten(copies(share)))
    for _ in range(3):
        hessian = np.asarray(TASK.hessian(vector))
        vector = vector - np.linalg.pinv(hessian, rcond=1e-6, hermitian=True) @ np.asarray(TASK.gradient(vector))
    return vector


@pytest.mark.parametrize(("share", "kind"), [(0.5, "minimum"), (0.3, "minimum"), (-0.3, "non-strict saddle")])
def test_kinks_of_exact_copies_decide(share, kind):
    """E[σσ] has a term |α|³, which rises if both weights have one sign and falls if not; nothing else is of its order.

    A fall behind the place where one of the weights changes its sign was taken for one of the point itself.
    """
    point = polished(share)
    certificate = us.certify(TASK, point)
    assert certificate.kind == kind
    base = float(TASK.loss(point))
    opened = [float(TASK.loss(copies(share, angle))) - base for angle in (0.02, 0.04)]
    assert np.log2(opened[1] / opened[0]) == pytest.approx(3, abs=0.1)
    assert (opened[0] > 0) == (kind == "minimum")
    if kind == "minimum":
        assert certificate.flat_dimension == 3  # two rescalings and the share
    else:
        assert float(TASK.loss(point + 0.03 * certificate.directions[0])) < base - 1e-7


def test_copies_that_still_close_in_are_at_their_critical_point():
    """The flow leaves copies 1e-7 apart at a time of 1e7: the certificate is that of the point where they meet."""
    point = polished(0.3)
    apart = np.asarray(TASK.flatten(copies(0.3, 4e-7))) - np.asarray(TASK.flatten(copies(0.3)))
    certificate = us.certify(TASK, point + apart)
    assert certificate.gradient_norm < 1e-12
    assert certificate.kind == "minimum", certificate.evidence
    assert 1e-8 < certificate.distance < 1e-6
