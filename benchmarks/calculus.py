"""Closed-form gradient and Hessian against autodiff, a large input dimension against n + k, biases against none.

With UNDERSTUDY_OLDER=DIR, a checkout of another version, evaluations without biases are timed in both.
"""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import understudy
from benchmarks.timing import best
from understudy import Population, Teacher, TwoLayer

EVALUATIONS = 200
"""Loss, gradient and Hessian evaluations set against one reduction: a flow takes 100 to 400 of them."""

SOURCE = Path(understudy.__file__).resolve().parents[1]
TURNS = 3


def start(n: int, k: int, d: int, activation: str = "erf") -> tuple[Population, TwoLayer]:
    rng = np.random.default_rng(0)
    task = Population(Teacher.orthonormal(k, d, activation), n)
    return task, TwoLayer(rng.normal(size=(n, d)) / np.sqrt(d), rng.normal(size=n))


def seconds_of_evaluation(task: Population, parameters: TwoLayer) -> float:
    vector = task.flatten(parameters)
    evaluate = jax.jit(lambda x: task.evaluate(x))
    return best(lambda: evaluate(vector))


def derivatives(n: int, k: int) -> list[str]:
    task, parameters = start(n, k, k + 1)
    vector = task.flatten(parameters)
    autodiff = jax.jit(lambda x: (*jax.value_and_grad(task.value)(x), jax.hessian(task.value)(x)))
    ours, theirs = seconds_of_evaluation(task, parameters), best(lambda: autodiff(vector), rounds=20)
    gap = float(abs(task.hessian(parameters) - autodiff(vector)[2]).max())
    return [f"({n}, {k})", f"{ours * 1e3:.2f}", f"{theirs * 1e3:.2f}", f"{theirs / ours:.1f}", f"{gap:.0e}"]


def dimensions(n: int, k: int, d: int) -> list[str]:
    """Reduction and 200 evaluations in dimension d, beside 200 evaluations in dimension n + k."""
    task, parameters = start(n, k, d)
    reduction = best(lambda: task.in_span(parameters)[1].incoming, rounds=10)
    small, coordinates, _ = task.in_span(parameters)
    total = reduction + EVALUATIONS * seconds_of_evaluation(small, coordinates)
    base = EVALUATIONS * seconds_of_evaluation(*start(n, k, n + k))
    times = [f"{1e3 * time:.0f}" for time in (reduction, total, base)]
    return [f"({n}, {k})", f"{d:,}", *times, f"{total / base:.2f}"]


def biases(name: str, n: int, k: int) -> list[str]:
    """Loss, gradient and Hessian with trained biases, beside the same without."""
    plain, parameters = start(n, k, k + 1, name)
    biased = Population(Teacher.orthonormal(k, dim=k + 1, activation=name), n, bias="trained")
    shifted = TwoLayer(parameters.incoming, parameters.outgoing, np.linspace(-0.5, 0.5, n), 0.1)
    without, with_biases = seconds_of_evaluation(plain, parameters), seconds_of_evaluation(biased, shifted)
    times = [f"{1e3 * time:.3f}" for time in (without, with_biases)]
    return [name, f"({n}, {k})", *times, f"{with_biases / without:.2f}"]


def older(checkout: Path) -> list[list[str]]:
    """Evaluations without biases: this code beside that of another checkout, each in its own process, in turns."""
    rows = []
    for name in ("erf", "relu"):
        times: dict[Path, list[float]] = {SOURCE: [], checkout / "src": []}
        for _ in range(TURNS):
            for source, seconds in times.items():
                environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(SOURCE.parent)])}
                command = [sys.executable, "-c", f"from benchmarks.calculus import report; report({name!r}, 8, 16)"]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
                seconds.append(float(done.stdout))
        ours, theirs = (min(seconds) for seconds in times.values())
        rows.append([name, "(8, 16)", f"{1e3 * ours:.3f}", f"{1e3 * theirs:.3f}", f"{theirs / ours:.2f}"])
    return rows


def report(name: str, n: int, k: int) -> None:
    """Print the seconds of one evaluation; another process reads them."""
    print(seconds_of_evaluation(*start(n, k, k + 1, name)))


def main() -> None:
    console = Console()
    table = Table(title="Loss, gradient and Hessian, erf, d = k + 1 (target: ratio ≥ 5)")
    for column in ("(n, k)", "closed form, ms", "jax.hessian, ms", "ratio", "largest difference"):
        table.add_column(column, justify="right")
    for n, k in ((8, 16), (16, 48)):
        table.add_row(*derivatives(n, k))
    console.print(table)

    table = Table(title=f"Reduction + {EVALUATIONS} evaluations, against n + k (target: ratio ≤ 1.5)")
    for column in ("(n, k)", "d", "reduction, ms", "d, ms", "n + k, ms", "ratio"):
        table.add_column(column, justify="right")
    for n, k in ((8, 16), (16, 48)):
        table.add_row(*dimensions(n, k, 100_000))
    console.print(table)

    table = Table(title="Loss, gradient and Hessian with biases, d = k + 1 (target: ratio ≤ 2)")
    for column in ("activation", "(n, k)", "without, ms", "with, ms", "ratio"):
        table.add_column(column, justify="right")
    for name in ("erf", "relu", "tanh"):
        table.add_row(*biases(name, 8, 16))
    console.print(table)

    if checkout := os.environ.get("UNDERSTUDY_OLDER"):
        table = Table(title=f"Loss, gradient and Hessian without biases, here and in {checkout} (target: ratio ≥ 0.95)")
        for column in ("activation", "(n, k)", "here, ms", "there, ms", "ratio"):
            table.add_column(column, justify="right")
        for row in older(Path(checkout)):
            table.add_row(*row)
        console.print(table)
