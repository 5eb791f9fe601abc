"""Statistics by blocks against those with all activations at hand; observers from weights against search."""

import jax.numpy as jnp
import numpy as np
import pytest

from cases import thorough_but
from understudy.alignment import align, measure, observations, observes_in_ball, recovery_interval, refer
from understudy.networks import Deep

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("samples", thorough_but([40, 500, 610], []))
def test_blocks_give_what_all_samples_give(samples):
    x = jnp.asarray(RNG.normal(size=(samples, 4)))
    teacher, student = Deep.glorot([4, 3, 5, 2], seed=0, bias=0.2), Deep.glorot([4, 6, 4, 2], seed=1, bias=0.2)
    dead = jnp.where(jnp.arange(6) == 2, -100.0, student.biases[0])  # a node that is never active
    student = Deep(student.weights, (dead, *student.biases[1:]))
    found = measure(student, refer(teacher, x))
    for layer, rho in zip(align(student, teacher, x), found.correlations, strict=True):
        np.testing.assert_allclose(rho, layer.correlations, atol=1e-12)
    np.testing.assert_array_equal(found.correlations[0][:, 2], 0)
    gap = np.asarray(teacher(x, "relu") - student(x, "relu"))
    assert float(found.loss) == pytest.approx(0.5 * np.mean(np.sum(gap**2, axis=1)), rel=1e-12)


@pytest.mark.thorough
def test_several_teachers_in_one_reference():
    x = jnp.asarray(RNG.normal(size=(2, 30, 4)))
    teachers = [Deep.glorot([4, 3, 2], seed=s) for s in (0, 1)]
    student = Deep.glorot([4, 5, 2], seed=2)
    apart = [refer(t, x[i]) for i, t in enumerate(teachers)]
    both = type(apart[0])(
        *(jnp.concatenate([a[i], b[i]]) for i in range(2) for a, b in [apart]),
        (jnp.concatenate([apart[0].units[0], apart[1].units[0]]),),
    )
    found = measure(student, both, 30, 30)
    np.testing.assert_allclose(found.correlations[0], measure(student, apart[1]).correlations[0], atol=1e-13)


def test_the_opposite_of_an_observer_is_not_observed():
    w, b = RNG.normal(size=(500, 3)), RNG.normal(size=500)
    assert not np.diag(observes_in_ball(w, b, -w, -b, 2.0)).any()
    assert np.diag(observes_in_ball(w, b + 1e-12, -w, -b, 2.0)).any()


def test_observers_from_weights_against_search():
    d, radius = 3, 2.0
    w, b = RNG.normal(size=(6, d)), 2 * RNG.normal(size=6)
    v, a = RNG.normal(size=(5, d)), 1.5 * RNG.normal(size=5)
    found = observes_in_ball(w, b, v, a, radius)
    # Against the best of many points of the disc where the plane cuts the ball (its rim holds the maximum).
    for j in range(5):
        unit = v[j] / np.linalg.norm(v[j])
        centre = -a[j] / np.linalg.norm(v[j]) * unit
        if centre @ centre >= radius**2:
            assert not found[:, j].any()
            continue
        along = np.linalg.svd(unit[None])[2][1:]
        angles = np.linspace(0, 2 * np.pi, 20001)
        rim = centre + np.sqrt(radius**2 - centre @ centre) * (
            np.cos(angles)[:, None] * along[0] + np.sin(angles)[:, None] * along[1]
        )
        highest = np.max(rim @ w.T + b, axis=0)
        clear = np.abs(highest) > 1e-6
        np.testing.assert_array_equal(found[clear, j], highest[clear] > 0)
    with pytest.raises(ValueError, match="no boundary"):
        observes_in_ball(w, b, np.zeros((1, d)), [1.0], radius)


def test_what_samples_show_is_there():
    x = RNG.normal(size=(500, 3))
    x = x[np.linalg.norm(x, axis=1) < 2]
    w, b, v, a = RNG.normal(size=(6, 3)), RNG.normal(size=6), RNG.normal(size=(4, 3)), RNG.normal(size=4)
    seen = observations(np.maximum(x @ w.T + b, 0), np.maximum(x @ v.T + a, 0))
    active, on = x @ w.T + b > 0, x @ v.T + a > 0
    brute = [
        [min((active[:, k] & on[:, j]).sum(), (active[:, k] & ~on[:, j]).sum()) for j in range(4)] for k in range(6)
    ]
    np.testing.assert_array_equal(seen, brute)
    assert np.all(
        observes_in_ball(w, b, v, a, 2.0)[seen > 0]
    )  # the ball is convex: between two sides lies the boundary


def test_recovery_has_an_interval_over_seeds():
    flags = np.random.default_rng(1).random((40, 20)) < 0.3
    share, low, high = recovery_interval(flags)
    assert share == flags.mean()
    assert low < share < high
    spread = flags.mean(axis=1).std() / np.sqrt(40)
    assert (high - low) / 2 == pytest.approx(1.96 * spread, rel=0.15)
    assert np.isnan(recovery_interval(flags[:1])[1])
    same = recovery_interval(np.ones((5, 4)))
    assert same == (1.0, 1.0, 1.0)
