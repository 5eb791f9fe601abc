"""The flow to critical points beside other solvers with the same gradient, Hessian and tolerances; sizes and cores.

Compiling is not counted on any side. Solvers are timed in turn, three times, and medians count. The others stop at a
gradient norm of 5e-8; our runs go on to rounding (1e-14 or so) by a justified jump.
"""

import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.integrate import solve_ivp

from benchmarks import budget, peers
from understudy import Population, Teacher, certify, fit
from understudy.dynamics import FlowOptions, follow, starts
from understudy.processes import core_count

CASES = ((5, 4, 20, 20, 40), (16, 8, 20, 8, 15), (48, 16, 4, 6, 12), (64, 32, 2, 15, 40))
"""Teachers, students, seeds, the ratio to BDF that is asked for and the ratio aimed at."""

ROUNDS, MOST_SECONDS = 3, 100.0

PEERS = {
    "SciPy BDF": (peers.scipy_bdf, 0, 10**6),
    "CVODE, dense": (peers.cvode_dense, 0, 1000),
    "CVODE, Krylov": (peers.cvode_krylov, 500, 10**6),
    "Diffrax Kvaerno5": (peers.diffrax_kvaerno5, 0, 200),
}
"""Other solvers, and the numbers of parameters between which they are timed: beyond, they take minutes."""

_per_seed: dict[int, float] = {}
"""Our seconds per seed by number of parameters."""


def problem(k: int, n: int, seeds: int, dim: int | None = None) -> tuple[Population, np.ndarray]:
    task = Population(Teacher.orthonormal(k, dim=dim or k + 1), width=n)
    return task, np.asarray(task.flatten(starts.gaussian(task, seeds, 0.1)))


def against_others(console: Console) -> None:
    table = Table(title="Gradient flow, erf, d = k + 1, tolerances 1e-6, to a critical point, one thread each")
    for column in (
        "(k, n) × seeds",
        "solver",
        "seconds, median (range)",
        "steps",
        "factors",
        "times ours",
        "asked",
        "aim",
    ):
        table.add_column(column, justify="left" if column == "solver" else "right")
    for k, n, seeds, asked, aim in CASES:
        if budget.is_spent():
            console.print(f"({k}, {n}) × {seeds}: left out, time is up.")
            continue
        task, begin = problem(k, n, seeds)
        list(follow(task, begin[:2]))  # compiles flow and jump: two starts, because one has a program of its own
        candidates = {"ours": partial(_tried, peers.ours, task, begin)}
        for name, (solver, least, most) in PEERS.items():
            if least <= task.size <= most:
                candidates[name] = partial(_tried, solver, task, begin)
        found = budget.alternate(candidates, ROUNDS, MOST_SECONDS)
        mine = statistics.median(c.seconds for c in found["ours"])
        _per_seed[task.size] = mine / seeds
        for name, counts in found.items():
            if isinstance(counts[0], str):
                table.add_row(f"({k}, {n}) × {seeds}", name, counts[0])
                continue
            seconds = [c.seconds for c in counts]
            ratio = "" if name == "ours" else f"{statistics.median(seconds) / mine:.1f}"
            wanted = (str(asked), str(aim)) if name == "SciPy BDF" else ("", "")
            told = (f"{counts[0].steps:.0f}", f"{counts[0].factorisations:.0f}")
            table.add_row(f"({k}, {n}) × {seeds}", name, budget.told(seconds), *told, ratio, *wanted)
        table.add_section()
    console.print(table)


def _tried(solver: Any, task: Population, begin: np.ndarray) -> Any:
    """What the solver returns, or why it did not finish, in a few words."""
    try:
        return solver(task, begin)
    except ModuleNotFoundError as error:
        return f"{error.name} is not installed"
    except (AssertionError, RuntimeError) as error:
        return f"failed: {str(error)[:60]}"


def accuracy(console: Console) -> None:
    """What equal tolerances mean: errors along the way, against SciPy's Radau at 1e-10."""
    times = np.array([1.0, 10.0, 100.0])
    table = Table(
        title="Root mean square errors at equal tolerances of 1e-6, mean of 12 seeds (asked: at most twice BDF's)"
    )
    for column in ("(k, n)", "t", "BDF", "ours"):
        table.add_column(column, justify="right")
    for k, n in ((5, 4), (16, 8)):
        task, begin = problem(k, n, 12)
        slope, jacobian = peers.functions(task, begin[0])

        def solve(
            x: np.ndarray, method: str, rtol: float, atol: float, f: Any = slope, j: Any = jacobian
        ) -> np.ndarray:
            return solve_ivp(
                lambda _, x: f(x), (0, times[-1]), x, method, times, jac=lambda _, x: j(x), rtol=rtol, atol=atol
            ).y.T

        exact = np.stack([solve(x, "Radau", 1e-10, 1e-11) for x in begin])
        bdf = np.stack([solve(x, "BDF", 1e-6, 1e-6) for x in begin])
        options = FlowOptions(snapshots=times, max_time=times[-1], polish=False)
        runs = dict(follow(task, begin, options))
        ours = np.stack([runs[i].snapshots for i in range(len(begin))])
        errors = [np.sqrt(np.mean((x - exact) ** 2, axis=2)).mean(axis=0) for x in (bdf, ours)]
        for t, *row in zip(times, *errors, strict=True):
            table.add_row(f"({k}, {n})", f"{t:g}", *(f"{error:.1e}" for error in row))
    console.print(table)


def verdicts(console: Console) -> None:
    """Whether tolerances of 1e-6 lead to the same points as 1e-9."""
    table = Table(title="Verdicts and labels at tolerances 1e-6 beside 1e-9")
    for column in ("(k, n) × seeds", "verdicts that differ", "labels that differ"):
        table.add_column(column, justify="right")
    for k, n, seeds in ((13, 8, 200), (16, 8, 60)):
        task = problem(k, n, 1)[0]
        usual, strict = fit(task, seeds), fit(task, seeds, options=FlowOptions(rtol=1e-9, atol=1e-9))
        pairs = list(zip(usual, strict, strict=True))
        kinds = sum(a.certificate.kind != b.certificate.kind for a, b in pairs)
        labels = sum(a.structure.label != b.structure.label for a, b in pairs)
        table.add_row(f"({k}, {n}) × {seeds}", f"{kinds} of {seeds}", f"{labels} of {seeds}")
    console.print(table)


def cores(console: Console) -> None:
    """Seeds to certificates with two processes and with one, compiled before, begun by a process of its own."""
    if core_count() < 2:
        console.print("Two processes: left out, there is one core.")
        return
    found = json.loads(_alone("fit_on_cores"))
    ratio = statistics.median(found["1"]) / statistics.median(found["2"])
    console.print(
        f"200 seeds of (16, 8) to certificates: one process {budget.told(found['1'])} s, two "
        f"{budget.told(found['2'])} s, "
        f"ratio {ratio:.2f} (asked: 1.7, aim 1.9)"
    )


def fit_on_cores() -> None:
    task, seeds = problem(16, 8, 1)[0], 200

    def run(jobs: int) -> float:
        clock = time.perf_counter()
        fit(task, seeds, jobs=jobs)
        return time.perf_counter() - clock

    fit(task, 40, jobs=1), fit(task, 40, jobs=2)
    print(json.dumps(budget.alternate({"1": partial(run, 1), "2": partial(run, 2)}, 3, 120.0)))


def _alone(function: str) -> str:
    """What a function of this module prints in a process of its own, where nothing else has been computed before."""
    code = f"from benchmarks.flow import {function}; {function}()"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600).stdout


def largest(console: Console) -> None:
    """One seed of (256, 64), 16,512 parameters, from its start to a certificate, in a process of its own."""
    try:
        printed = _alone("fit_largest")
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        console.print(f"(256, 64), 16,512 parameters: no result within 600 s ({type(error).__name__})")
        return
    seconds, flow, memory, kind = printed.split("|")
    console.print(
        f"(256, 64), 16,512 parameters, one seed, alone, with compiling: {float(seconds):.0f} s to '{kind.strip()}' "
        "with "
        f"{float(memory):.2f} GiB (asked: 600 s, under 4 GiB; aim 180 s); its flow {float(flow):.0f} s"
    )
    if 800 in _per_seed:
        exponent = math.log(float(flow) / _per_seed[800]) / math.log(16512 / 800)
        console.print(
            f"Time of a seed between (48, 16) and (256, 64) grows like (parameters)^{exponent:.2f} (asked: 1.6)"
        )


def fit_largest() -> None:
    clock = time.perf_counter()
    task, begin = problem(256, 64, 1)
    vector = next(follow(task, begin))[1].vector
    run = certify(task, vector)
    whole = time.perf_counter() - clock
    list(follow(task, begin))  # once more, as everywhere else without compiling
    flow = time.perf_counter() - clock - whole
    print(f"{whole}|{flow}|{_peak_memory()}|{run.kind}")


def other_activations(console: Console) -> None:
    table = Table(title="Seeds to certificates, (k, n) = (8, 4) × 20, compiled before (required: 90 s, aim 20)")
    for column in ("activation", "s", "s a seed", "minima", "largest gradient norm"):
        table.add_column(column, justify="right")
    for activation in ("erf", "relu", "softplus", "sigmoid", "tanh"):
        task = Population(Teacher.orthonormal(8, dim=9, activation=activation), width=4)
        fit(task, 20, options=FlowOptions(max_steps=3)), fit(task, 2)
        clock = time.perf_counter()
        runs = fit(task, 20)
        seconds = time.perf_counter() - clock
        minima = sum(run.certificate.kind == "minimum" for run in runs)
        worst = max(run.certificate.gradient_norm for run in runs)
        table.add_row(activation, f"{seconds:.2f}", f"{seconds / 20:.3f}", str(minima), f"{worst:.0e}")
    console.print(table)


def dimensions(console: Console) -> None:
    table = Table(title="Seeds to certificates by input dimension, erf, (k, n) = (8, 4) × 20 (required: ratio ≤ 2)")
    for column in ("d", "s a seed", "ratio"):
        table.add_column(column, justify="right")
    base = None
    for dim in (9, 100_000):
        task = Population(Teacher.orthonormal(8, dim=dim), width=4)
        std = 0.1 if dim == 9 else 0.3 / np.sqrt(dim)
        fit(task, 2, init_std=std)
        best = np.inf
        for _ in range(5):
            clock = time.perf_counter()
            fit(task, 20, init_std=std)
            best = min(best, (time.perf_counter() - clock) / 20)
        base = base or best
        table.add_row(f"{dim:,}", f"{best:.3f}", f"{best / base:.2f}")
    console.print(table)


def first_second(console: Console) -> None:
    """Processor time of `understudy fit` (the default case, one process), before and after its programs are stored."""
    code = "import sys; from understudy.cli import main; sys.argv = ['understudy', 'fit', '--jobs', '1']; main()"

    def used(cache: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = os.environ | {"UNDERSTUDY_CACHE": cache}
        subprocess.run([sys.executable, "-c", code], env=environment, cwd=cache, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    try:
        with TemporaryDirectory() as cache:
            cold, *warm = (used(cache) for _ in range(4))
    except subprocess.CalledProcessError as error:
        console.print(f"`understudy fit`: failed ({error.stderr.decode()[-200:]})")
        return
    console.print(
        f"`understudy fit`, default case, processor time: cold {cold:.1f} s (asked: 6), warm {budget.told(warm)} s "
        "(asked: 2.0)"
    )


def memory(console: Console) -> None:
    console.print(f"Peak memory of (48, 16) × 20, its own process: {float(_alone('peak')):.2f} GiB (required: under 2)")


def peak() -> None:
    task, begin = problem(48, 16, 20)
    list(follow(task, begin))
    print(_peak_memory())


def _peak_memory() -> float:
    """In GiB. Not by getrusage: a child's peak there begins with what its parent used before exec."""
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 2**20


def main() -> None:
    console = Console(width=150)
    sections = (against_others, cores, accuracy, largest, verdicts, other_activations, dimensions, memory, first_second)
    for section in sections:
        if budget.is_spent():
            console.print(f"{section.__name__}: left out, time is up (UNDERSTUDY_BENCH_SECONDS).")
            continue
        section(console)
