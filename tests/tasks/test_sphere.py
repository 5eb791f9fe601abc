"""Students on the sphere: the loss by two routes, derivatives by two routes, the chart, reduction, bad input."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from cases import thorough_but
from understudy.tasks.sphere import Sphere, tangent_basis

EPS = np.finfo(float).eps


def unit(rng, *shape):
    rows = rng.normal(size=shape)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def sphere_and_point(degree, n=3, k=2, d=4, seed=0, **options):
    rng = np.random.default_rng(seed)
    task = Sphere(unit(rng, k, d), n, activation=f"hermite:{degree}", **options)
    return task, jnp.asarray(unit(rng, n, d).ravel())


def scale(task):
    """Terms of the Hessian are at most ρ², and there are n + k of them for each student."""
    return task.degree**2 * (task.width + task.teacher.width)


@pytest.mark.few(2)
@pytest.mark.parametrize("degree", [1, 2, 3, 4, 6])
def test_loss_is_half_the_mean_squared_error(degree):
    task, w = sphere_and_point(degree)
    assert abs(float(task.population.loss(w)) / 2 - float(task.loss(w))) <= 20 * EPS * scale(task)


@eqx.filter_jit
def closed_and_automatic(task, vector):
    return (
        task.evaluate(vector),
        task.value_and_gradient(vector)[1],
        jax.grad(task.value)(vector),
        jax.hessian(task.value)(vector),
    )


KINDS = [(1, {}), (2, {}), (2, {"loss": "correlation"}), (4, {}), (4, {"loss": "correlation"}), (4, {"repulsion": 0.3})]
KINDS.append((5, {"repulsion": 0.3}))


@pytest.mark.parametrize(("degree", "options"), thorough_but(KINDS, [KINDS[0], KINDS[2], KINDS[5]]))
def test_derivatives_against_automatic_differentiation(degree, options):
    task, w = sphere_and_point(degree, seed=degree, **options)
    (loss, gradient, hessian), alone, first, second = closed_and_automatic(task, 1.3 * w)
    assert float(loss) == pytest.approx(float(task.loss(w)), abs=20 * EPS * scale(task))
    np.testing.assert_allclose(gradient, first, rtol=0, atol=50 * EPS * scale(task))
    np.testing.assert_allclose(hessian, second, rtol=0, atol=50 * EPS * scale(task))
    np.testing.assert_allclose(alone, gradient, rtol=0, atol=10 * EPS * scale(task))


@pytest.mark.parametrize("degree", [2, 4, 5])
def test_gradient_is_the_paper_formula_and_tangential(degree):
    task, w = sphere_and_point(degree)
    rows = np.asarray(w).reshape(3, 4)
    a = np.asarray(task.euclidean_gradient(w))
    printed = a - np.diag(np.diag(a @ rows.T)) @ rows
    own = np.asarray(task.gradient(w)).reshape(3, 4)
    np.testing.assert_allclose(own, printed, rtol=0, atol=20 * EPS * scale(task))
    assert np.abs(np.sum(own * rows, axis=1)).max() <= 20 * EPS * scale(task)


@eqx.filter_jit
def chart_by_two_routes(task, w, y):
    local, origin = task.chart(w)
    jacobian = jax.jacfwd(local.point)(y)
    first = jax.grad(local.value)(y)
    return {
        "loss": (local.evaluate(y).loss, local.value(y)),
        "gradient": (local.evaluate(y).gradient, first),
        "hessian": (local.evaluate(y).hessian, jax.hessian(local.value)(y)),
        # -ẏ = G⁻¹∇ with the pulled-back metric G, and at the origin its Jacobian is the Hessian.
        "slope": (local.slope(y), jnp.linalg.solve(jacobian.T @ jacobian, first)),
        "jacobian": (local.evaluate(origin).hessian, jax.jacfwd(local.slope)(origin)),
        "tangent": (jnp.linalg.norm(local.evaluate(origin).gradient), jnp.linalg.norm(task.value_and_gradient(w)[1])),
    }


@pytest.mark.thorough
@pytest.mark.parametrize("degree", thorough_but([3, 4], [3]))
def test_chart_derivatives_and_slope(degree):
    task, w = sphere_and_point(degree)
    y = jnp.asarray(0.3 * np.random.default_rng(1).normal(size=9))
    for name, (closed, other) in chart_by_two_routes(task, w, y).items():
        np.testing.assert_allclose(closed, other, rtol=0, atol=200 * EPS * scale(task), err_msg=name)


@eqx.filter_jit
def at_chart_origin(task, w):
    local, origin = task.chart(w)
    return local, local.evaluate(origin).hessian


def test_riemannian_hessian_by_geodesics():
    """d²/dt² L along great circles, by central differences of the gradient: the error of h = 1e-4 is ~ h² ρ⁴."""
    task, w = sphere_and_point(4)
    local, hessian = at_chart_origin(task, w)
    rng = np.random.default_rng(2)
    rows, h = np.asarray(w).reshape(3, 4), 1e-4
    for _ in range(5):
        y = rng.normal(size=(3, 3))
        direction = np.einsum("idt,it->id", np.asarray(local.basis), y)
        speed = np.linalg.norm(direction, axis=1, keepdims=True)
        losses = []
        for t in (-h, 0.0, h):
            moved = np.cos(t * speed) * rows + np.sin(t * speed) * direction / speed
            losses.append(float(task.loss(moved)))
        second = (losses[0] - 2 * losses[1] + losses[2]) / h**2
        assert second == pytest.approx(float(y.ravel() @ np.asarray(hessian) @ y.ravel()), abs=1e-5 * scale(task))


@pytest.mark.parametrize("vector", [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.6, -0.8, 0.0]])
def test_tangent_basis_is_orthonormal(vector):
    basis = np.asarray(tangent_basis(jnp.asarray(vector)))
    full = np.column_stack([vector, basis])
    np.testing.assert_allclose(full.T @ full, np.eye(3), rtol=0, atol=4 * EPS)


def test_points_have_unit_norm_to_the_last_digit():
    task, w = sphere_and_point(4, n=4, d=6)
    point = eqx.filter_jit(lambda t, x, y: t.chart(x)[0].point(y))
    for seed in range(20):
        y = jnp.asarray(np.random.default_rng(seed).normal(size=20))
        norms = np.linalg.norm(np.asarray(point(task, w, y)).reshape(4, 6), axis=1)
        assert np.abs(norms - 1).max() <= 2 * EPS


def test_reduction_keeps_loss_and_gradient():
    task = Sphere(us.Teacher.orthonormal(2, 9, "hermite:4"), 2)
    rows = unit(np.random.default_rng(3), 5, 2, 9)
    reduction = task.reduce(task.flatten(rows))
    assert reduction.task.dim == 4
    np.testing.assert_allclose(reduction.task.loss(reduction.vectors), task.loss(rows), rtol=0, atol=1e-13)
    back = np.stack([reduction.lift(v, i) for i, v in enumerate(reduction.vectors)])
    np.testing.assert_allclose(back.reshape(5, 2, 9), rows, rtol=0, atol=1e-14)


def test_symmetries_do_not_change_the_loss_and_are_null_at_critical_points():
    task = Sphere(us.Teacher.orthonormal(2, 5, "hermite:4"), 3)
    w = unit(np.random.default_rng(4), 3, 5)
    flipped = w[[2, 0, 1]] * np.array([[1.0], [-1.0], [1.0]])
    assert float(task.loss(flipped)) == pytest.approx(float(task.loss(w)), abs=1e-14)

    @eqx.filter_jit
    def tangents_and_gradients(task, vector):
        local, origin = task.chart(vector)
        ambient = task.symmetry_tangents(vector), task.value_and_gradient(vector)[1]
        return ambient, (local.symmetry_tangents(origin), local.value_and_gradient(origin)[1])

    for (tangents, gradient), count in zip(
        tangents_and_gradients(task, jnp.asarray(w.ravel())), (3 + 3, 3), strict=True
    ):
        assert tangents.shape[0] == count
        assert float(jnp.linalg.norm(gradient)) > 0.1
        np.testing.assert_allclose(tangents @ gradient, 0, atol=1e-13)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sphere(np.eye(2), 0), "positive whole number"),
        (lambda: Sphere(2 * np.eye(2), 2), "norm 1"),
        (lambda: Sphere(np.eye(2), 2, activation="erf"), "Hermite"),
        (lambda: Sphere(np.eye(2), 2, repulsion=-1.0), "≥ 0"),
        (lambda: Sphere(np.eye(2), 2, loss="correlation", repulsion=2.0), "no repulsion"),
        (lambda: Sphere(us.Teacher(np.eye(2), [1.0, 2.0], "hermite:4"), 2), "outgoing weight is 1"),
        (
            lambda: Sphere(us.Teacher.orthonormal(2, 2, "hermite:4"), 2, activation="hermite:6"),
            "leave `activation` out",
        ),
        (lambda: Sphere([[1.0]], 1), "dimension 2"),
        (lambda: Sphere(np.eye(2), 2).loss(np.ones((2, 2))), "norm 1"),
        (lambda: Sphere(np.eye(2), 2).loss(np.ones(3)), "flat vector of 4"),
    ],
)
def test_bad_input_is_explained(make, message):
    with pytest.raises(ValueError, match=message):
        make()
