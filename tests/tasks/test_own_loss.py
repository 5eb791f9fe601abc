"""A user's own loss: values, bounds, starts, and what is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us


def test_derivatives_are_those_of_the_function():
    task = us.Loss(lambda v: v[0] ** 2 * v[1] + v[1] ** 3, 2)
    assert float(task.loss([2.0, 1.0])) == 5.0
    np.testing.assert_allclose(task.gradient([2.0, 1.0]), [4.0, 7.0])
    np.testing.assert_allclose(task.hessian([2.0, 1.0]), [[2.0, 4.0], [4.0, 6.0]])
    np.testing.assert_allclose(task.loss([[2.0, 1.0], [0.0, 1.0]]), [5.0, 1.0])


def test_own_starts_are_used():
    task = us.Loss(lambda v: jnp.sum((v**2 - 1) ** 2), 2, lower_bound=0.0, starts=lambda seed: [1.5 + seed, -2.0])
    np.testing.assert_array_equal(task.starts([0, 3]), [[1.5, -2.0], [4.5, -2.0]])
    for run in us.fit(task, seeds=2):
        np.testing.assert_allclose(run.parameters, [1.0, -1.0], atol=1e-12)
        assert run.certificate.kind == "minimum"


def test_a_saddle_is_a_saddle():
    task = us.Loss(lambda v: v[0] ** 2 - v[1] ** 2, 2)
    assert us.certify(task, [0.0, 0.0]).kind == "strict saddle"
    assert task.structure([0.0, 0.0]).label == ""


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: us.Loss(lambda v: np.sin(v)[0], 1), "jax.numpy"),
        (lambda: us.Loss(lambda v: 1.0 if v[0] > 0 else 0.0, 1), "jnp.where"),
        (lambda: us.Loss(lambda v: v, 3), r"returns float64 of shape \(3,\)"),
        (lambda: us.Loss(lambda v: jnp.dot(v, jnp.ones(4)), 3), r"cannot be computed for an array of shape \(3,\)"),
        (lambda: us.Loss(jnp.sum, 0), "positive whole number"),
        (lambda: us.Loss(jnp.sum, 2, lower_bound=np.nan), "lower bound"),
        (lambda: us.Loss(jnp.sum, 2).loss([1.0, 2.0, 3.0]), "2 parameters"),
        (lambda: us.Loss(jnp.sum, 2).loss([1.0, np.nan]), "finite"),
        (lambda: us.fit(us.Loss(jnp.sum, 2), seeds=1, init="glorot"), "knows none"),
        (lambda: us.activations.from_function(np.sin, "sin"), "use|jax.numpy"),
        (lambda: us.activations.from_function(lambda x: jnp.sum(x), "sum"), "each entry"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
