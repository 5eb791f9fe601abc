"""The one-neuron solver against closed forms, an independent minimisation, and the task's own gradient and Hessian."""

import math

import equinox as eqx
import numpy as np
import pytest

import understudy as us
from cases import thorough_but
from understudy.activations import from_function
from understudy.theory.one_neuron import NoCriticalPointError, critical_points, one_neuron, radial_slope

KS = [1, 2, 3, 7, 20, 100]


def arccos_kernel(u):
    return (math.sqrt(max(1 - u * u, 0.0)) + (math.pi - math.acos(u)) * u) / (2 * math.pi)


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("closed_form", [True, False])
def test_erf_has_the_closed_form_of_corollary_5_2(k, closed_form):
    best = one_neuron("erf", k, closed_form=closed_form)
    assert best.norm == pytest.approx(1 / math.sqrt(2 * k - 1), rel=1e-12)
    assert best.outgoing == pytest.approx(k, rel=1e-12)
    assert best.loss == pytest.approx(2 / math.pi * (k * math.pi / 6 - k**2 * math.asin(1 / (2 * k))), abs=1e-12)
    assert [p.kind for p in best.critical_points] == ["minimum", "minimum"]
    mirror = best.critical_points[1]
    assert (mirror.correlation, mirror.outgoing) == (pytest.approx(-best.correlation), pytest.approx(-best.outgoing))


@pytest.mark.parametrize("k", KS)
def test_relu_has_the_closed_form_of_corollary_g_5(k):
    best = one_neuron("relu", k)
    h = arccos_kernel(1 / math.sqrt(k))
    assert best.invariant == pytest.approx(2 * k * h, rel=1e-12)
    expected = k**2 * (1 / (2 * math.pi) - 2 * h**2) + k * (0.5 - 1 / (2 * math.pi))
    assert best.loss == pytest.approx(expected, rel=1e-12, abs=1e-13)
    others = [p for p in best.critical_points if p.correlation < 0]
    assert [p.kind for p in others] == ([] if k == 1 else ["saddle"])


@pytest.mark.parametrize(
    ("activation", "k"), thorough_but([("softplus", 4), ("sigmoid", 2), ("tanh:0.5", 3)], [("softplus", 4)])
)
def test_smooth_optima_are_critical_minima_of_the_task(activation, k):
    best = one_neuron(activation, k)
    task = us.Population(us.Teacher.orthonormal(k, dim=k + 1, activation=activation), width=1)
    found = eqx.filter_jit(lambda t, v: t.evaluate(v))(task, task.flatten(best.parameters(dim=k + 1)))
    assert np.linalg.norm(found.gradient) < 1e-10 * best.outgoing
    assert float(found.loss) == pytest.approx(best.loss, abs=1e-11)
    spectrum = np.linalg.eigvalsh(np.asarray(found.hessian))
    expected = np.sort(np.repeat(best.eigenvalues, [1, 1, k - 1, 1]))
    assert np.allclose(spectrum, expected, rtol=1e-8, atol=1e-9 * spectrum.max())
    assert best.kind == "minimum"


def test_softplus_has_no_point_at_negative_correlation():
    for k in (1, 2, 10):
        assert [np.sign(p.correlation) for p in critical_points("softplus", k)] == [1.0]


def test_gelu_has_no_point_for_two_or_more_teachers():
    assert critical_points("gelu", 2) == ()
    with pytest.raises(NoCriticalPointError, match="no zero"):
        one_neuron("gelu", 5)
    assert one_neuron("gelu", 1).norm == pytest.approx(1.0, abs=1e-12)
    # Beyond u = 0.802 there are zeros, at norms above one: the absence is a statement about u ≤ 1/√2.
    assert np.any(radial_slope("gelu", np.linspace(1.0, 3.0, 50), 0.9) > 0)


@pytest.mark.thorough
def test_own_activations_are_solved_too():
    import jax.numpy as jnp

    soft_sign = from_function(lambda x: jnp.arctan(x), "atan", parity="odd", steepness=1.6, growth=0)
    best = one_neuron(soft_sign, 3)
    task = us.Population(us.Teacher.orthonormal(3, activation=soft_sign), width=1)
    assert np.linalg.norm(task.gradient(best.parameters())) < 1e-9


@pytest.mark.parametrize("teachers", [0, -1, True])
def test_bad_numbers_of_teachers_are_refused(teachers):
    with pytest.raises(ValueError, match="positive integer"):
        one_neuron("erf", teachers)
