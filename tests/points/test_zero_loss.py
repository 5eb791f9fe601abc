"""A loss at its lower bound is a global minimum, and its flat set has the right dimension."""

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.points.surroundings import Surroundings
from understudy.points.zero_loss import at_lower_bound


@pytest.mark.few(3)
@pytest.mark.parametrize("activation", ["relu", "erf", "abs", "quadratic", "hermite:3", "softplus"])
def test_copies_of_one_teacher_are_minima_however_they_share(activation):
    task = us.Population(us.Teacher([[1.0, 0.0]], [1.0], activation), 3)
    for shares in ([1.0, 1.0, -1.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [2.0, -1.0, 0.0]):
        found = us.certify(task, us.TwoLayer([[1.0, 0.0]] * 3, shares))
        assert found.kind == "minimum"
        assert found.drop < 1e-13


@pytest.mark.parametrize(
    ("extra", "outgoing", "flat"),
    [
        ([[0.4, 0.3]], [1.0, 1.0, 0.0], 2),  # the incoming vector of a dead neuron
        ([[0.4, 0.3]], [1.0, 1.0, 1e-12], 2),
        ([[0.0, 1.0]], [1.0, 0.3, 0.7], 1),  # shares of two copies
        ([[0.0, 1.0]], [1.0, 1.0, 0.0], 2),  # both cross: the larger
        ([[0.0, 1.0], [0.4, 0.3]], [1.0, 0.3, 0.7, 0.0], 3),
    ],
)
def test_the_flat_set_counts_dead_and_duplicate_neurons(extra, outgoing, flat):
    incoming = np.concatenate([np.eye(2), extra])
    task = us.Population(us.Teacher.orthonormal(2), width=len(incoming))
    found = us.certify(task, us.TwoLayer(incoming, outgoing))
    assert (found.kind, found.flat_dimension) == ("minimum", flat)


def test_a_sample_on_a_kink_does_not_matter_at_zero_loss():
    x = jnp.asarray([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    network = us.TwoLayer([[1.0, 0.0]], [2.0])
    task = us.Empirical(network, x, network(x, "relu"), activation="relu")
    assert us.certify(task, network).kind == "minimum"


def test_a_saddle_with_a_small_loss_is_no_minimum():
    """Two teachers, one of them with an outgoing weight of 1e-9: ignoring it leaves a loss of 1e-19 and a way down."""
    task = us.Population(us.Teacher(np.eye(2), [1.0, 1e-3], "erf"), 1)
    assert us.certify(task, us.TwoLayer([[1.0, 0.0]], [1.0])).kind != "minimum"


@pytest.mark.parametrize(("apart", "lowest"), [(1e-9, True), (1e-4, False)])
def test_rounding_beyond_the_estimate_does_not_hide_the_bound(apart, lowest):
    """Sums of many interactions are off by more than estimated; the way to the teacher says what the loss is."""
    task = us.Population(us.Teacher.orthonormal(3, activation="relu"), width=3)
    point = task.flatten(us.TwoLayer(np.eye(3), np.ones(3)))
    around = Surroundings(task.prepared(point), np.asarray(point) + apart)
    around.loss = 1e-11 / around.unit
    assert (at_lower_bound(around) is not None) == lowest
