"""Closed-form gradient and Hessian against autodiff, and a large input dimension against n + k."""

import equinox as eqx
import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.timing import best
from understudy import Population, Teacher, TwoLayer

EVALUATIONS = 200
"""Gradient + Hessian evaluations set against one reduction: a flow takes 100 to 400 of them."""

evaluate = eqx.filter_jit(lambda task, vector: task.evaluate(vector))
autodiff = eqx.filter_jit(
    lambda task, vector: (*jax.value_and_grad(task.value)(vector), jax.hessian(task.value)(vector))
)


def start(n: int, k: int, d: int) -> tuple[Population, TwoLayer]:
    rng = np.random.default_rng(0)
    return Population(Teacher.orthonormal(k, d), n), TwoLayer(rng.normal(size=(n, d)) / np.sqrt(d), rng.normal(size=n))


def derivatives(n: int, k: int) -> list[str]:
    task, parameters = start(n, k, k + 1)
    vector = task.flatten(parameters)
    ours, theirs = best(lambda: evaluate(task, vector)), best(lambda: autodiff(task, vector))
    gap = float(abs(evaluate(task, vector).hessian - autodiff(task, vector)[2]).max())
    return [f"({n}, {k})", f"{ours * 1e3:.2f}", f"{theirs * 1e3:.2f}", f"{theirs / ours:.1f}", f"{gap:.0e}"]


def dimensions(n: int, k: int, d: int) -> list[str]:
    """Reduction and 200 evaluations in dimension d, beside 200 evaluations in dimension n + k."""
    (task, parameters), (small, few) = start(n, k, d), start(n, k, n + k)
    reduction = best(lambda: task.reduce(parameters)[1].incoming, rounds=3)
    reduced, coordinates, _ = task.reduce(parameters)
    large = best(lambda: evaluate(reduced, reduced.flatten(coordinates)))
    direct = best(lambda: evaluate(small, small.flatten(few)))
    total, base = reduction + EVALUATIONS * large, EVALUATIONS * direct
    return [
        f"({n}, {k})",
        f"{d:,}",
        f"{reduction * 1e3:.0f}",
        f"{total * 1e3:.0f}",
        f"{base * 1e3:.0f}",
        f"{total / base:.2f}",
    ]


def main() -> None:
    console = Console()
    table = Table(title="Loss, gradient and Hessian, erf, d = k + 1 (target: ratio ≥ 5)")
    for column in ("(n, k)", "closed form, ms", "jax.hessian, ms", "ratio", "largest difference"):
        table.add_column(column, justify="right")
    for n, k in ((8, 16), (16, 48)):
        table.add_row(*derivatives(n, k))
    console.print(table)

    table = Table(title=f"Dimension d: reduction + {EVALUATIONS} evaluations, against n + k (target: ratio ≤ 1.5)")
    for column in ("(n, k)", "d", "reduction, ms", "d, ms", "n + k, ms", "ratio"):
        table.add_column(column, justify="right")
    for n, k in ((4, 8), (8, 16), (16, 48)):
        table.add_row(*dimensions(n, k, 100_000))
    console.print(table)
