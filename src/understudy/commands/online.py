"""`understudy online`: order-parameter equations of one-pass SGD."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands import shared
from understudy.commands.online_phases import show_phases
from understudy.commands.options import check_out, options_of, translate
from understudy.commands.screen import exit_if_unstored, fail, new_table, show_table, tell_files, try_to_store

if TYPE_CHECKING:
    from rich.console import Console

    from understudy.online import OnlineResult, Plateau, Simulation

ARRAYS = ("times", "loss", "student_overlaps", "teacher_overlaps", "outgoing")
OPTIONS = options_of("noise", "norm", "dim", learning_rate="--rate", weight_decay="--decay")


def online(
    activation: shared.Activation = "erf",
    teacher: shared.Teachers = 2,
    student: Annotated[int, typer.Option(help="Number n of student neurons.")] = 2,
    rate: Annotated[float, typer.Option(help="Learning rate η; one step is η/d times the gradient.")] = 0.1,
    noise: Annotated[float, typer.Option(help="Standard deviation of the label noise.")] = 0.0,
    decay: Annotated[float, typer.Option(help="Weight decay λ.")] = 0.0,
    outgoing: Annotated[str, typer.Option(help="trained, or fixed at 1 (a soft committee machine).")] = "fixed",
    until: Annotated[float, typer.Option(help="Time α = steps / d at which the run ends.")] = 3000.0,
    norm: Annotated[float, typer.Option(help="Norm of the students at the start.")] = 0.5,
    dim: Annotated[int, typer.Option(help="Input dimension of the random start and of the simulation.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the start.")] = 0,
    simulate: Annotated[int, typer.Option(help="Also simulate SGD with this many seeds.")] = 0,
    certify: Annotated[
        bool, typer.Option("--certify", help="Print the certificate of the critical point behind each plateau.")
    ] = False,
    phases: Annotated[
        str | None,
        typer.Option(
            help="Learning rates, such as 0.1,0.3,1. Prints the error for α → ∞ at each, for --teacher to --student "
            "students."
        ),
    ] = None,
    out: shared.FigureOut = None,
    json_: shared.Json = False,
) -> None:
    """Follow one-pass SGD in the limit of large dimension: overlaps, error, plateaus and when they end.

    Example: `understudy online --teacher 2 --student 2 --rate 0.1 --until 3000 --certify --out results`
    """
    begun = time.perf_counter()
    check_out(out)
    if not (math.isfinite(until) and until > 0):
        fail(f"--until is a positive time; received {until:g}.")
    if outgoing not in ("trained", "fixed"):
        fail(f"--outgoing is 'trained' or 'fixed'; received {outgoing!r}.")
    if simulate < 0:
        fail(f"--simulate is a number of seeds; received {simulate}.")
    if phases is not None:
        if outgoing == "trained" or decay or simulate or certify:
            fail("--phases is for fixed outgoing weights, without --decay, --simulate and --certify. Leave those out.")
        show_phases(activation, teacher, student, phases, noise, out, json_)
        return
    import numpy as np

    from understudy.compilation import keep_compiled_programs
    from understudy.networks import Teacher
    from understudy.online import Online, find_plateaus
    from understudy.tasks import Population

    keep_compiled_programs()
    times = np.linspace(0.0, until, 401)
    try:
        task = Population(
            Teacher.orthonormal(teacher, activation=activation),
            student,
            outgoing="trained" if outgoing == "trained" else 1.0,
        )
        equations = Online(task, rate, noise=noise, weight_decay=decay)
        start = equations.start(seed, dim=dim, norm=norm)
        result = equations.run(start, times)
        beside = equations.simulate(start, times[::8], dim=dim, seeds=simulate) if simulate else None
    except (ValueError, TypeError) as error:
        fail(translate(error, OPTIONS))
    plateaus = find_plateaus(result)
    told = {
        "activation": activation, "teacher": teacher, "student": student, "rate": rate, "noise": noise, "decay": decay,
        "outgoing": outgoing, "until": until, "norm": norm, "dim": dim, "seed": seed, "simulate": simulate,
    }  # fmt: skip
    seconds = time.perf_counter() - begun
    files, problem = try_to_store(lambda: [] if out is None else _store(told, result, plateaus, beside, out))
    if json_:
        print(json.dumps(_as_json(told, result, plateaus, beside, seconds), indent=1))
    else:
        _print(told, result, plateaus, beside, seconds, certify)
        tell_files("Written", files)
    exit_if_unstored(problem)
    if result.ending == "diverged":
        raise typer.Exit(1)


def _store(
    told: dict[str, Any], result: OnlineResult, plateaus: list[Plateau], beside: Simulation | None, out: Path
) -> list[Path]:
    """The run as a dataset in the store, and the figure."""
    import xarray as xr

    from understudy import plots
    from understudy.store import Store, configuration_hash

    data: dict[str, Any] = {
        "loss": ("time", result.loss),
        "student_overlaps": (("time", "student", "student_2"), result.student_overlaps),
        "teacher_overlaps": (("time", "student", "teacher"), result.teacher_overlaps),
        "outgoing": (("time", "student"), result.outgoing),
    }
    if beside is not None:
        data |= {
            "simulated_loss": (("seed", "simulated_time"), beside.loss),
            "simulated_student_overlaps": (("seed", "simulated_time", "student", "student_2"), beside.student_overlaps),
            "simulated_teacher_overlaps": (("seed", "simulated_time", "student", "teacher"), beside.teacher_overlaps),
        }
    configuration = {"kind": "online", **told}
    path = Store(out).save(configuration, xr.Dataset(data, coords={"time": result.times}))
    stem = out / f"online-{configuration_hash(configuration)[:12]}"
    return [path, *plots.save(plots.online(result, simulation=beside, plateaus=plateaus), stem)]


def _plateau_json(plateau: Plateau) -> dict[str, Any]:
    from understudy.files import finite_or_none

    names = ("kind", "loss", "gradient_norm", "least_eigenvalue", "index")
    return {
        "begin": plateau.begin,
        "end": plateau.end,
        "loss": plateau.loss,
        "fixed_point_loss": finite_or_none(plateau.fixed_loss),
        "growth_rates": list(plateau.growth_rates),
        "predicted_leaving": finite_or_none(plateau.predicted_leaving),
        "measured_leaving": finite_or_none(plateau.measured_leaving),
        "critical": {
            **{name: getattr(plateau.certificate, name) for name in names},
            "growth_rates": list(plateau.critical_rates),
            "distance": plateau.distance,
        },
    }


def _as_json(
    told: dict[str, Any], result: OnlineResult, plateaus: list[Plateau], beside: Simulation | None, seconds: float
) -> dict[str, Any]:
    return {
        "task": told,
        "seconds": round(seconds, 3),
        "ending": result.ending,
        "message": result.message,
        "average_error": result.average_error,
        **{name: getattr(result, name).tolist() for name in ARRAYS},
        "plateaus": [_plateau_json(plateau) for plateau in plateaus],
        "simulation": None if beside is None else {"times": beside.times.tolist(), "loss": beside.loss.tolist()},
    }


def _print(
    told: dict[str, Any],
    result: OnlineResult,
    plateaus: list[Plateau],
    beside: Simulation | None,
    seconds: float,
    certify: bool,
) -> None:
    import numpy as np
    from rich.console import Console

    console = Console()
    console.print(
        f"[bold]{told['activation']}[/], {told['teacher']} teachers, {told['student']} students, η = {told['rate']:g}, "
        f"noise {told['noise']:g}",
        highlight=False,
    )
    heads = ("α", "loss", "largest overlap with each teacher", *(["simulated loss"] if beside is not None else []))
    table = new_table(heads)
    for i in np.unique(np.linspace(0, len(result.times) - 1, 9).astype(int)) if len(result.times) else ():
        overlaps = " ".join(f"{x:.3f}" for x in np.abs(result.teacher_overlaps[i]).max(axis=0))
        extra = []
        if beside is not None:
            near = int(np.argmin(np.abs(beside.times - result.times[i])))
            extra = [f"{beside.loss[:, near].mean():.3e}"]
        table.add_row(f"{result.times[i]:g}", f"{result.loss[i]:.3e}", overlaps, *extra)
    show_table(console, table)
    if plateaus:
        _print_plateaus(console, plateaus)
    if certify:
        _print_certificates(console, plateaus)
    if result.average_error:
        console.print(
            f"Averages over four Gaussians: relative error about {result.average_error:.0e}.", highlight=False
        )
    if result.message:
        console.print(f"[bold]Diverged.[/] {translate(result.message, OPTIONS)}", highlight=False, soft_wrap=True)
    console.print(f"{seconds:.1f} s. Loss: E(f - f*)², without the noise.", highlight=False)


def _print_plateaus(console: Console, plateaus: list[Plateau]) -> None:
    """One column per plateau, so that three fit on a narrow screen with all their digits."""
    table = new_table(("", *(f"plateau {i + 1}" for i in range(len(plateaus)))), left=("",))
    rows: dict[str, Callable[[Plateau], str]] = {
        "from α": lambda p: f"{p.begin:g}",
        "to α": lambda p: f"{p.end:g}",
        "loss": lambda p: f"{p.loss:.6f}",
        "growth rate of the fixed point": lambda p: f"{p.growth_rates[0]:.2e}" if p.growth_rates else "-",
        "loss a tenth lower, at α": lambda p: _time(p.measured_leaving),
        "… as the linearised equations predict": lambda p: _time(p.predicted_leaving),
        "critical point behind it": lambda p: p.certificate.kind,
        "its loss": lambda p: f"{p.certificate.loss:.6f}",
        "its index": lambda p: str(p.index),
        "its growth rate η|λ|/2": lambda p: f"{max(p.critical_rates):.2e}" if p.critical_rates else "-",
    }
    for name, show in rows.items():
        table.add_row(name, *(show(p) for p in plateaus))
    show_table(console, table)


def _time(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) else "-"


def _print_certificates(console: Console, plateaus: list[Plateau]) -> None:
    for i, p in enumerate(plateaus, 1):
        c = p.certificate
        console.print(
            f"Plateau {i}: {c.kind}, loss {c.loss:.12f}, gradient norm {c.gradient_norm:.1e}, index {c.index}, "
            f"least eigenvalue {c.least_eigenvalue:.6e}, zero modes {c.zeros}. {'; '.join(c.evidence)}",
            highlight=False,
            soft_wrap=True,
        )
    if not plateaus:
        console.print("No plateau in this run: nothing to certify.")
