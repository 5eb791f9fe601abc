"""`understudy online --phases`: the error that label noise leaves, over learning rates and numbers of students."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.commands.options import parse_list
from understudy.commands.screen import exit_if_unstored, fail, new_table, show_table, tell_files, try_to_store

if TYPE_CHECKING:
    from understudy.online import Phases


def show_phases(
    activation: str, teacher: int, student: int, listed: str, noise: float, out: Path | None, as_json: bool
) -> None:
    """Compute, print, and with `out` store and draw."""
    rates = parse_list(listed, "--phases", "0.1,0.3,1")
    if min(rates) <= 0 or any(b <= a for a, b in pairwise(rates)):
        fail(f"--phases are positive learning rates that increase; received {listed!r}.")
    if student < teacher:
        fail(
            f"--phases needs at least as many students as teachers; received --student {student}, --teacher {teacher}."
        )
    if not (math.isfinite(noise) and noise > 0):
        fail(f"--phases needs --noise above 0: without noise no error remains; received {noise:g}. Try --noise 0.1.")
    from understudy.compilation import keep_compiled_programs
    from understudy.networks import Teacher
    from understudy.online import asymptotic_phases

    keep_compiled_programs()
    try:
        committee = Teacher.orthonormal(teacher, activation=activation)
        phases = asymptotic_phases(committee, range(teacher, student + 1), rates, noise=noise)
    except (ValueError, TypeError) as error:
        fail(str(error))
    told = {"activation": activation, "teacher": teacher, "student": student, "noise": noise, "rates": rates}
    files, problem = try_to_store(lambda: [] if out is None else _store(told, phases, out))
    if as_json:
        from understudy.files import finite_or_none

        errors = [[finite_or_none(value) for value in row] for row in phases.errors.tolist()]
        found = {"students": phases.widths.tolist(), "errors": errors, "growth_rates": phases.growth_rates.tolist()}
        print(json.dumps({"task": told, **found}, indent=1))
    else:
        _print(told, phases)
        tell_files("Written", files)
    exit_if_unstored(problem)


def _store(told: dict[str, Any], phases: Phases, out: Path) -> list[Path]:
    """The errors as a dataset in the store, and the figure."""
    import xarray as xr

    from understudy import plots
    from understudy.store import Store, configuration_hash

    axes = ("rate", "students")
    data = {"error": (axes, phases.errors), "growth_rate": (axes, phases.growth_rates)}
    configuration = {"kind": "online-phases", **told}
    dataset = xr.Dataset(data, coords={"rate": phases.rates, "students": phases.widths})
    path = Store(out).save(configuration, dataset)
    stem = out / f"online-phases-{configuration_hash(configuration)[:12]}"
    return [path, *plots.save(plots.phases(phases), stem)]


def _print(told: dict[str, Any], phases: Phases) -> None:
    from rich.console import Console

    console = Console()
    title = f"[bold]{told['activation']}[/], {told['teacher']} teachers, noise {told['noise']:g}: error for α → ∞"
    console.print(title, highlight=False)
    table = new_table(("η", *(f"{width} students" for width in phases.widths)))
    for rate, row in zip(phases.rates, phases.errors, strict=True):
        table.add_row(f"{rate:g}", *(f"{value:.3e}" if math.isfinite(value) else "unstable" for value in row))
    show_table(console, table)
    console.print(
        "E(f - f*)² to first order in noise², around the perfect student with silent superfluous students. unstable: "
        "at this η the equations leave the perfect student even without noise.",
        highlight=False,
        soft_wrap=True,
    )
