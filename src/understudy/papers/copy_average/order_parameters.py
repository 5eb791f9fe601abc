"""Claim `order-params`: the loss from norms and correlations, and where order parameters have no weights behind
them.
"""

from typing import Any

import numpy as np

from understudy.papers.check import Check, at_least, at_most, close, holds
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

N = K = 3  # students and teachers: with fewer students the constraints are exact


def _there_and_back(students: int, progress: Progress) -> list[Check]:
    """Random students turned into order parameters and back: their losses and constraints."""
    import understudy as us
    from understudy.papers.copy_average.realisation import constraints, loss_from_order_parameters, reconstruct
    from understudy.tasks import order_parameters

    rng = np.random.default_rng(1)
    direct, projected, room, box, gaps = [], [], [], [], []
    teachers = {
        "orthonormal, d = k": us.Teacher.orthonormal(K),
        "orthonormal, d = k + 1": us.Teacher.orthonormal(K, dim=K + 1),
        "independent": us.Teacher(rng.normal(size=(K, K + 2)), rng.normal(size=K), "erf"),
    }
    for name, teacher in progress.over(teachers.items(), "weights to order parameters:"):
        task = us.Population(teacher, width=N)
        for _ in range(students):
            student = us.TwoLayer(rng.normal(size=(N, teacher.dim)), rng.normal(size=N))
            order = order_parameters(task, student)
            loss = float(task.loss(student))
            direct += [loss, float(task.loss(reconstruct(teacher, order)))]
            projected += [float(loss_from_order_parameters(task, order)), loss]
            found = constraints(teacher, order)
            room.append(found.ball.min())
            box.append(found.box.min())
            gaps += _gaps_of_equalities(name, found.ball, order)
    return [
        close("loss from weights and from order parameters, and back", np.array(direct), np.array(projected), 1e-11),
        at_least("ball constraint ‖u‖ ≤ 1, or Eq. 31", room, bound=-1e-12),
        at_least("box constraint (Eq. 28)", box, bound=-1e-12),
        at_most("equalities of d = k (Eq. 32-33) and d = k + 1 (Eq. 35)", gaps, bound=1e-12),
    ]


def _gaps_of_equalities(name: str, ball: Any, order: Any) -> list[float]:
    """How far the constraints are from equalities, for teachers of that name that make them such."""
    u, rho = np.asarray(order.student_teacher), np.asarray(order.student_student)
    if name == "orthonormal, d = k":
        return [np.abs(ball).max(), np.abs(rho - np.asarray(order.student_teacher @ order.student_teacher.T)).max()]
    if name == "orthonormal, d = k + 1":
        outside = np.sqrt(1 - np.sum(u**2, axis=1))
        return [np.abs(np.abs(rho - u @ u.T) - np.outer(outside, outside)).max()]
    return []


def _impossible() -> list[Check]:
    """Three students, each pair as opposite as Eq. 28 allows: no three vectors are pairwise antiparallel."""
    import understudy as us
    from understudy.papers.copy_average.realisation import constraints, reconstruct
    from understudy.tasks import OrderParameters

    teacher = us.Teacher.orthonormal(K, dim=K + N)
    u = np.full((N, K), 0.45)
    inside = u @ u.T
    rho = inside - (1 - np.diag(inside))[:, None] * np.ones((N, N))
    np.fill_diagonal(rho, 1.0)
    parts: list[Any] = [np.full(N, 0.8), u, rho, np.ones(N)]
    impossible = OrderParameters(*parts)
    found = constraints(teacher, impossible)
    try:
        reconstruct(teacher, impossible)
        refused = ""
    except ValueError as error:
        refused = str(error)
    return [
        at_least("three students: constraints of Eq. 10 hold", [found.ball.min(), found.box.min()], bound=-1e-12),
        at_most("three students: least eigenvalue of the Gram matrix outside the span", found.determinant, bound=-1e-3),
        holds("three students: no weights exist", bool(refused), refused or "weights were found"),
    ]


def _unbounded() -> tuple[list[Check], list[float]]:
    """The projected loss of erf along such a triple, which is unbounded: g(r_i, r_j, ρ_ij) is not positive."""
    import understudy as us
    from understudy.papers.copy_average.realisation import constraints, loss_from_order_parameters
    from understudy.tasks import OrderParameters

    teacher = us.Teacher.orthonormal(K, dim=K + N)
    opposite = OrderParameters(*_opposite(N, K))
    task = us.Population(teacher, width=N)
    falling = [
        float(loss_from_order_parameters(task, opposite._replace(outgoing=opposite.outgoing * scale)))
        for scale in np.array([1.0, 10.0, 100.0])
    ]
    found = constraints(teacher, opposite)
    return [
        at_least("erf, u = 0, ρ = -1: constraints of Eq. 10 hold", [found.ball.min(), found.box.min()], bound=-1e-12),
        at_most("erf, u = 0, ρ = -1: projected loss for outgoing weights 100", falling[-1], bound=-1000.0),
    ], falling


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import understudy as us

    checks = [*_there_and_back(settings["students"], progress), *_impossible()]
    found, falling = _unbounded()
    progress(0.6, "relaxed problem with ReLU")
    relaxed = _relaxed_minimum("relu", 3, 4, settings["starts"])
    kinked = us.Population(us.Teacher.orthonormal(4, dim=7, activation="relu"), width=3)
    true = min(run.loss for run in us.fit(kinked, seeds=settings["starts"]))
    checks += [
        *found,
        at_most(
            "ReLU, n = 3, k = 4: lowest relaxed loss found minus least loss of weights", relaxed - true, bound=-1e-3
        ),
    ]
    measured = {
        "ReLU, n = 3, k = 4: lowest relaxed loss found": relaxed,
        "the same, least loss of weights": true,
        "erf, n = 3, u = 0, ρ = -1, a = 1, 10, 100: projected loss": falling,
    }
    notes = (
        "For n ≥ 3 the relaxed problem does give a lower bound, but an empty one: with erf the projected loss falls "
        f"without limit along order parameters that satisfy Eq. 10, and with ReLU a search finds {relaxed:.4g}, below "
        "zero, which no loss is."
    )
    return Measurement(checks, measured, notes=notes)


def _opposite(n: int, k: int) -> list[Any]:
    """Students orthogonal to all teachers and pairwise antiparallel, which three vectors cannot be."""
    return [np.ones(n), np.zeros((n, k)), 2 * np.eye(n) - np.ones((n, n)), np.ones(n)]


def _relaxed_minimum(name: str, n: int, k: int, starts: int) -> float:
    """Least projected loss over a, r, u in the ball and each ρ in its own interval, by BFGS from random starts."""
    import jax
    import jax.numpy as jnp
    from scipy.optimize import minimize

    from understudy import activations
    from understudy.gaussian import Covariance, pair_partials, self_partials

    sigma = activations.get(name)
    upper = np.triu_indices(n, 1)
    constant = k * float(self_partials(sigma, jnp.ones(1)).value[0])
    apart = Covariance.from_correlation(jnp.ones(1), jnp.ones(1), jnp.zeros(1))
    constant += k * (k - 1) * float(pair_partials(sigma, sigma, apart).value[0])

    def loss(z: Any) -> Any:
        a, r = z[:n], jnp.exp(z[n : 2 * n])
        raw = z[2 * n : 2 * n + n * k].reshape(n, k)
        size = jnp.sqrt(jnp.sum(raw**2, axis=1) + 1e-12)
        length = 0.9999 * size / jnp.sqrt(1 + size**2)
        u = raw / size[:, None] * length[:, None]
        room = jnp.sqrt(1 - length**2)
        share = jnp.sin(z[2 * n + n * k :])
        i, j = upper
        rho = jnp.sum(u[i] * u[j], axis=1) + 0.9999 * share * room[i] * room[j]
        own = jnp.sum(a**2 * self_partials(sigma, r**2).value)
        students = pair_partials(sigma, sigma, Covariance.from_correlation(r[i], r[j], rho)).value
        teachers = pair_partials(sigma, sigma, Covariance.from_correlation(r[:, None], jnp.ones((1, k)), u)).value
        return own + 2 * jnp.sum(a[i] * a[j] * students) - 2 * jnp.sum(a[:, None] * teachers) + constant

    value_and_gradient = jax.jit(jax.value_and_grad(loss))
    best = np.inf
    for seed in range(starts):
        start = np.random.default_rng(seed).normal(size=2 * n + n * k + len(upper[0]))
        found = minimize(
            lambda z: [np.asarray(x, float) for x in value_and_gradient(z)],
            start,
            jac=True,
            method="BFGS",
            options={"gtol": 1e-9, "maxiter": 3000},
        )
        best = min(best, float(found.fun))
    return best


CLAIM = Claim(
    paper="copy-average",
    id="order-params",
    where="Eq. 10, 25-37, Remark D.1, App. D.1-D.3",
    statement=(
        "The loss is a function of norms, correlations and outgoing weights; these obey a ball and a box constraint, "
        "which are equalities for d = k and d = k + 1; for one and two students they are exact, for three or more a "
        "relaxation that only gives a lower bound."
    ),
    paper_value="weights → (r, u, ρ) → the same loss; for n ≥ 3 some order parameters have no weights",
    measured_by=(
        "Random students there and back; a triple that no weights realise; BFGS on the relaxed problem against fits."
    ),
    tolerance=1e-11,
    tolerance_reason="Two exact formulas for one number; sums of ten terms of order one.",
    quick={"students": 2, "starts": 3},
    full={"students": 50, "starts": 60},
    measure=_measure,
)
