"""Tight balance: angles against mpmath, spectra against the task, the quartic and the escape time at ρ = 4."""

import math

import equinox as eqx
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from understudy.dynamics import FlowOptions, follow
from understudy.papers.tight_balance import tight_pairs as theory
from understudy.tasks.sphere import Sphere


@pytest.mark.parametrize("degree", range(4, 21, 2))
def test_angle_to_rounding(degree):
    with mpmath.workdps(40):

        def condition(t):
            return mpmath.cos(t) ** (degree - 2) - mpmath.sin(t) ** (degree - 2) - 2 * mpmath.cos(2 * t) ** (degree - 1)

        exact = mpmath.findroot(condition, theory.angle(degree))
        assert abs(exact - theory.angle(degree)) < 1e-15
    assert theory.angle(4) == math.pi / 8


@pytest.mark.parametrize("repulsion", [0.6, 1.0, 1.7])
@pytest.mark.parametrize("degree", [4, 6, 10])
def test_one_positive_root_by_all_roots(degree, repulsion):
    """The polynomial in z = cos² 2θ has one positive root: all roots by the companion matrix."""
    m = degree // 2 - 1
    polynomial = np.zeros(m + 1)
    polynomial[: (m + 1) // 2] = [math.comb(m, j) / 2 ** (m - 1) for j in range(1, m + 1, 2)]
    polynomial[m] -= 2 * repulsion
    roots = np.roots(polynomial[::-1])
    positive = roots[(np.abs(roots.imag) < 1e-9) & (roots.real > 0)].real
    assert len(positive) == 1
    assert math.cos(2 * theory.angle(degree, repulsion)) ** 2 == pytest.approx(float(positive[0]), abs=1e-12)


@eqx.filter_jit
def riemannian(task, rows):
    local, origin = task.chart(rows)
    return local.evaluate(origin)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("degree", "dim", "repulsion"), [(4, 2, 1.0), (4, 4, 0.8), (6, 3, 1.0), (14, 3, 1.0), (8, 3, 0.8)]
)
def test_spectrum_in_closed_form(degree, dim, repulsion):
    pair = theory.tight_balance(degree, repulsion)
    task = Sphere(np.eye(2, dim), 2, activation=f"hermite:{degree}", repulsion=repulsion)
    rows = jnp.asarray(theory.tight_pairs(2, 2, dim, degree, repulsion=repulsion).ravel())
    loss, gradient, hessian = riemannian(task, rows)
    assert float(jnp.linalg.norm(gradient)) < 1e-13
    assert float(loss) == pytest.approx(pair.loss, abs=1e-13)
    np.testing.assert_allclose(np.linalg.eigvalsh(hessian), pair.eigenvalues(dim), rtol=0, atol=1e-12)


def test_kinds():
    assert [theory.tight_balance(d).kind for d in (4, 6, 8, 20)] == ["non-strict saddle", *["minimum"] * 3]
    assert theory.tight_balance(4, 0.9).kind == "minimum"
    assert theory.tight_balance(4, 1.1).kind == "strict saddle"


@pytest.mark.parametrize("degree", [4, 8])
def test_outside_pair_is_critical_and_flat_to_order_degree(degree):
    task = Sphere(np.eye(2, 3), 2, activation=f"hermite:{degree}")
    rows = theory.outside_pair(3, degree)
    assert float(np.linalg.norm(np.asarray(task.gradient(rows)))) < 1e-13
    theta, alpha = theory.outside_angle(degree), 0.3
    turned = rows @ np.array(
        [[1.0, 0, 0], [0, math.cos(alpha), -math.sin(alpha)], [0, math.sin(alpha), math.cos(alpha)]]
    )
    change = float(task.loss(turned)) - float(task.loss(rows))
    assert change == pytest.approx(-2 * (math.sin(theta) * math.sin(alpha)) ** degree, abs=1e-15)


@pytest.mark.thorough
def test_quartic_and_escape_time():
    task = Sphere(np.eye(2), 2)
    s = np.array([1e-2, 3e-3])
    curve = theory.slow_curve(s)
    fall = np.asarray(task.loss(curve)) - 0.75
    np.testing.assert_allclose(fall, -((1 - np.cos(4 * s)) ** 2) / 4, rtol=0, atol=1e-15)
    times = np.logspace(-2, 5, 141).tolist()  # as many as in test_plateaus: one program for both
    runs = dict(follow(task, curve.reshape(2, -1), FlowOptions(rtol=1e-9, atol=1e-11, snapshots=times)))
    # The next order is relatively 64 s² times a few time units.
    for i in (0, 1):
        assert runs[i].ending == "polished"
        assert runs[i].time == pytest.approx(theory.escape_time(float(s[i])), rel=640 * float(s[i]) ** 2)


@pytest.mark.parametrize(("n", "k", "d", "pairs"), [(2, 2, 2, 1), (3, 3, 3, 1), (4, 5, 6, 2), (3, 4, 4, 0)])
def test_pairs_are_critical(n, k, d, pairs):
    task = Sphere(np.eye(k, d), n, activation="hermite:6")
    rows = theory.tight_pairs(n, k, d, 6, pairs)
    assert float(np.linalg.norm(np.asarray(task.gradient(rows)))) < 1e-13


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: theory.angle(5), "even degrees"),
        (lambda: theory.angle(2), "even degrees"),
        (lambda: theory.angle(4, 0.5), "above ½"),
        (lambda: theory.outside_angle(4, 0.4), "above ½"),
        (lambda: theory.tight_pairs(2, 2, 1, 4), "n ≤ k ≤ d"),
        (lambda: theory.outside_pair(2, 4), "d ≥ 3"),
    ],
)
def test_bad_input_is_explained(make, message):
    with pytest.raises(ValueError, match=message):
        make()
