"""Gradient flow to a gradient norm of 5e-8 by other solvers, all with our compiled gradient, Hessian and products.

Each function returns a `Count`. Compiling is not counted: everything is called once before the clock starts.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from understudy import Population
from understudy.dynamics import FlowOptions, follow

TOLERANCE, SMALL = 1e-6, 5e-8

MOST_SECONDS = {"BDF": 240.0, "CVODE": 60.0}
"""A solver that takes longer for its seeds is given up."""


def _check(name: str, begun: float) -> None:
    if time.perf_counter() - begun > MOST_SECONDS[name]:
        raise RuntimeError(f"not done after {MOST_SECONDS[name]:.0f} s")


@dataclass
class Count:
    """Seconds for all seeds; steps and factorisations (or new preconditioners) per seed; the end points."""

    seconds: float
    steps: float
    factorisations: float
    ends: np.ndarray


def ours(task: Population, begin: np.ndarray) -> Count:
    options = FlowOptions(rtol=TOLERANCE, atol=TOLERANCE)
    clock = time.perf_counter()
    runs = dict(follow(task, begin, options))
    seconds = time.perf_counter() - clock
    found = [runs[i] for i in range(len(begin))]
    assert all(t.ending == "polished" and t.gradient_norm < 1e-12 for t in found), "a run did not converge"
    steps, factorisations = (
        np.mean(x) for x in zip(*((t.steps + t.rejected, t.factorisations) for t in found), strict=True)
    )
    return Count(seconds, float(steps), float(factorisations), np.stack([t.flow_end for t in found]))


_compiled: dict[tuple[str, int], tuple[Population, Any]] = {}
"""What was compiled for a task, with the task, so that rounds after the first do not compile again."""


def _once(what: str, task: Population, make: Callable[[], Any]) -> Any:
    if (what, id(task)) not in _compiled:
        _compiled[what, id(task)] = task, make()
    return _compiled[what, id(task)][1]


def functions(task: Population, start: np.ndarray) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The slope -∇L and the Jacobian -H as functions of NumPy vectors, compiled."""
    return _once("functions", task, lambda: _functions(task, start))


def _functions(task: Population, start: np.ndarray) -> tuple[Callable[..., Any], Callable[..., Any]]:
    gradient = jax.jit(lambda x: task.value_and_gradient(x)[1])
    hessian = jax.jit(lambda x: task.evaluate(x).hessian)

    def slope(x: np.ndarray) -> np.ndarray:
        return -np.asarray(gradient(x))

    def jacobian(x: np.ndarray) -> np.ndarray:
        return -np.asarray(hessian(x))

    slope(start), jacobian(start)
    return slope, jacobian


def scipy_bdf(task: Population, begin: np.ndarray) -> Count:
    slope, jacobian = functions(task, begin[0])

    def small(_: float, x: np.ndarray) -> float:
        _check("BDF", clock)
        return float(np.linalg.norm(slope(x))) - SMALL

    small.terminal = True  # type: ignore[attr-defined]
    steps, factorisations, ends = 0, 0, []
    clock = time.perf_counter()
    for x in begin:
        found = solve_ivp(
            lambda _, x: slope(x), (0, 1e12), x, method="BDF", jac=lambda _, x: jacobian(x), rtol=TOLERANCE,
            atol=TOLERANCE, events=small,
        )  # fmt: skip
        assert found.status == 1, "BDF did not reach the gradient norm"
        steps, factorisations = steps + len(found.t) - 1, factorisations + found.nlu
        ends.append(found.y[:, -1])
    return Count(time.perf_counter() - clock, steps / len(begin), factorisations / len(begin), np.stack(ends))


def _step_until_small(solver: Any, slope: Callable[..., Any], x: np.ndarray, begun: float) -> tuple[int, np.ndarray]:
    solver.init_step(0.0, x)
    for step in range(1, 100_000):
        _check("CVODE", begun)
        found = solver.step(1e12, method="onestep")
        if not found.success:
            raise RuntimeError(found.message)
        if np.linalg.norm(slope(found.y)) <= SMALL:
            return step, np.array(found.y)
    raise RuntimeError("CVODE did not reach the gradient norm")


def cvode_dense(task: Population, begin: np.ndarray) -> Count:
    from sksundae.cvode import CVODE

    slope, jacobian = functions(task, begin[0])
    built = 0

    def right(_: float, x: np.ndarray, out: np.ndarray) -> None:
        out[:] = slope(x)

    def fill(_: float, x: np.ndarray, __: np.ndarray, out: np.ndarray) -> None:
        nonlocal built
        built += 1
        out[:] = jacobian(x)

    steps, ends = 0, []
    clock = time.perf_counter()
    for x in begin:
        solver = CVODE(right, jacfn=fill, linsolver="lapackdense", rtol=TOLERANCE, atol=TOLERANCE, max_num_steps=10**6)
        taken, end = _step_until_small(solver, slope, x, clock)
        steps, ends = steps + taken, [*ends, end]
    return Count(time.perf_counter() - clock, steps / len(begin), built / len(begin), np.stack(ends))


def cvode_krylov(task: Population, begin: np.ndarray) -> Count:
    """GMRES on our Hessian products, preconditioned by our blocks of I + γH, which are renewed when CVODE asks."""
    from sksundae.cvode import CVODE, CVODEJacTimes, CVODEPrecond

    from understudy.dynamics.krylov import Curvature

    curvature, groups = Curvature(task), task.hessian_groups
    times = _once("product", task, lambda: jax.jit(lambda x, v: task.hessian_product(x, v)))
    state: dict[str, Any] = {"built": 0}

    def right(_: float, x: np.ndarray, out: np.ndarray) -> None:
        out[:] = -curvature.slope(x)[1]

    def product(_: float, x: np.ndarray, __: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
        out[:] = -np.asarray(times(np.array(x), np.array(v)))

    def prepare(_: float, x: np.ndarray, __: np.ndarray, ok: int, new: list[int], gamma: float) -> None:
        state["inverse"] = np.asarray(curvature.inverse(np.array(x), 1 / gamma)) / gamma
        state["built"] += 1
        new[0] = 1

    def solve(
        t: float,
        x: np.ndarray,
        slope: np.ndarray,
        residual: np.ndarray,
        out: np.ndarray,
        gamma: float,
        delta: float,
        lr: int,
    ) -> None:
        found = np.empty(len(residual))
        found[groups] = np.einsum("gab,gb->ga", state["inverse"], np.array(residual)[groups])
        out[:] = found

    right(0.0, begin[0], np.empty_like(begin[0])), times(begin[0], begin[0])
    curvature.inverse(begin[0], 1.0)
    steps, ends = 0, []
    clock = time.perf_counter()
    for x in begin:
        solver = CVODE(
            right, linsolver="gmres", krylov_dim=30, jactimes=CVODEJacTimes(None, product),
            precond=CVODEPrecond(prepare, solve), rtol=TOLERANCE, atol=TOLERANCE, max_num_steps=10**6,
        )  # fmt: skip
        taken, end = _step_until_small(solver, lambda x: curvature.slope(x)[1], x, clock)
        steps, ends = steps + taken, [*ends, end]
    return Count(time.perf_counter() - clock, steps / len(begin), state["built"] / len(begin), np.stack(ends))


def diffrax_kvaerno5(task: Population, begin: np.ndarray) -> Count:
    solve = _once("diffrax", task, lambda: _kvaerno5(task))
    jax.block_until_ready(solve(begin[0]))
    clock = time.perf_counter()
    found = [jax.block_until_ready(solve(x)) for x in begin]
    seconds = time.perf_counter() - clock
    ends, steps = np.stack([np.asarray(end) for end, _ in found]), np.mean([int(count) for _, count in found])
    return Count(seconds, float(steps), float("nan"), ends)


def _kvaerno5(task: Population) -> Callable[..., Any]:
    """Its Newton method differentiates the slope; a rule for that gives it our closed-form Hessian."""
    import diffrax

    @jax.custom_jvp
    def slope(x: jax.Array) -> jax.Array:
        return -task.value_and_gradient(x)[1]

    @slope.defjvp
    def _(primals: tuple, tangents: tuple) -> tuple:
        evaluated = task.evaluate(primals[0])
        return -evaluated.gradient, -evaluated.hessian @ tangents[0]

    def small(t: Any, y: jax.Array, args: Any, **_: Any) -> jax.Array:
        return jnp.linalg.norm(slope(y)) <= SMALL

    @jax.jit
    def solve(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: slope(y)), diffrax.Kvaerno5(), 0.0, 1e12, 1e-2, x, max_steps=100_000,
            stepsize_controller=diffrax.PIDController(rtol=TOLERANCE, atol=TOLERANCE), event=diffrax.Event(small),
            throw=False,
        )  # fmt: skip
        return found.ys[-1], found.stats["num_steps"]

    return solve
