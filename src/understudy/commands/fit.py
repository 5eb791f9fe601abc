"""`understudy fit`: from random starts to certified, explained critical points."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.commands.options import check_out, parse_seeds
from understudy.commands.screen import fail, new_table, on_two_lines

if TYPE_CHECKING:
    import xarray as xr

    from understudy.tasks import Population, Sphere

FREE = {"outgoing": "trained", "init": "gaussian", "init_std": 0.1}
RUN_KEYS = ("seed", "loss", "gradient_norm", "least_eigenvalue", "index", "kind", "label", "flow_time")


def fit(
    activation: Annotated[str, typer.Option(help="erf, relu, softplus[:β], sigmoid, tanh, gelu, hermite:ρ, …")] = "erf",
    teacher: Annotated[int, typer.Option(help="Number k of teacher neurons, orthonormal, outgoing weights 1.")] = 8,
    student: Annotated[int, typer.Option(help="Number n of student neurons.")] = 4,
    seeds: Annotated[str, typer.Option(help="How many seeds, or which: 20, or 0,3,7, or 5-9.")] = "20",
    dim: Annotated[int | None, typer.Option(help="Input dimension d; k + 1 unless given.")] = None,
    outgoing: Annotated[
        str | None,
        typer.Option(help="trained, or fixed (all 1: a soft committee machine).", show_default="trained"),
    ] = None,
    sphere: Annotated[
        bool,
        typer.Option("--sphere", help="Unit-norm students and teachers, uniform starts; hermite:ρ only."),
    ] = False,
    init_std: Annotated[
        float | None, typer.Option(help="Standard deviation of the initial weights.", show_default="0.1")
    ] = None,
    init: Annotated[str | None, typer.Option(help="gaussian or glorot.", show_default="gaussian")] = None,
    tolerance: Annotated[float, typer.Option(help="Relative and absolute tolerance of the flow.")] = 1e-6,
    out: Annotated[Path | None, typer.Option(help="Directory for the stored result and the figure.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Follow gradient flow from many seeds to critical points, certify each and say what every neuron became.

    Example: `understudy fit --activation erf --teacher 8 --student 4 --seeds 20 --out results`
    """
    begun = time.perf_counter()
    numbers = parse_seeds(seeds)
    check_out(out)
    configuration = {
        "kind": "fit",
        "activation": activation,
        "teacher": teacher,
        "student": student,
        "dim": dim if dim is not None else teacher + 1,
        **_choices(sphere, outgoing=outgoing, init=init, init_std=init_std),
        "tolerance": tolerance,
    }
    if not json_:
        _say(
            f"[bold]{activation}[/], {teacher} teachers, {student} students, "
            f"d = {configuration['dim']}, {len(numbers)} seeds"
        )
    from understudy.compilation import keep_compiled_programs

    keep_compiled_programs()
    try:
        task = make_task(configuration)
        check_start(configuration)
    except (ValueError, TypeError) as error:
        fail(str(error))
    rows, reused = _collect(task, configuration, numbers, out, quiet=json_)
    chosen = rows.sel(seed=[s for s in numbers if s in rows["seed"].values])
    seconds = time.perf_counter() - begun
    if json_:
        print(json.dumps(_as_json(configuration, chosen, seconds), indent=1))
    else:
        _print_table(configuration, chosen, seconds, reused)
    if out is not None:
        from understudy.plots.fit import draw_fit

        paths = draw_fit(chosen, configuration, out)
        if not json_:
            _say("Figure: " + ", ".join(str(p) for p in paths))


def _choices(sphere: bool, **given: Any) -> dict[str, Any]:
    """What a fit leaves to choose, with defaults for what is not given; on the sphere there is no choice."""
    if not sphere:
        return {name: FREE[name] if value is None else value for name, value in given.items()}
    for name, value in given.items():
        if value is not None:
            option = "--" + name.replace("_", "-")
            fail(
                "On the sphere outgoing weights are 1 and starts are uniform; "
                f"received --sphere and {option} {value}. Leave {option} out."
            )
    return {"sphere": True}


def make_task(configuration: dict[str, Any]) -> Population | Sphere:
    """The task a configuration describes."""
    from understudy.networks import Teacher
    from understudy.tasks import Population, Sphere

    c = configuration
    teacher = Teacher.orthonormal(c["teacher"], c["dim"], c["activation"])
    if c.get("sphere"):
        return Sphere(teacher, c["student"])
    if c["outgoing"] not in ("trained", "fixed"):
        raise ValueError(f"--outgoing is 'trained' or 'fixed'; received {c['outgoing']!r}.")
    return Population(teacher, c["student"], outgoing="trained" if c["outgoing"] == "trained" else 1.0)


def compute_rows(task: Population | Sphere, configuration: dict[str, Any], seeds: list[int]) -> xr.Dataset:
    """Run these seeds and return their rows; used by sweeps."""
    from understudy.dynamics import FlowOptions
    from understudy.fitting import fit as run
    from understudy.results import to_dataset

    options = FlowOptions(rtol=configuration["tolerance"], atol=configuration["tolerance"])
    runs = run(task, seeds, **start_of(configuration), options=options)
    return to_dataset(list(runs), options.times)


def _collect(
    task: Population | Sphere, configuration: dict[str, Any], numbers: list[int], out: Path | None, quiet: bool
) -> tuple[xr.Dataset, int]:
    """Rows of all seeds: stored ones are reused, the others computed in a thread while progress is shown and kept."""
    import xarray as xr

    from understudy.dynamics import FlowOptions
    from understudy.fitting import fit_each
    from understudy.results import SeedRows, to_dataset
    from understudy.store import Store

    keeper = None if out is None else SeedRows(Store(out), configuration)
    stored = None if keeper is None else keeper.load()
    waiting = numbers if keeper is None else keeper.missing(numbers)
    reused = len(numbers) - len(waiting)
    if not waiting:
        assert stored is not None
        return stored, reused
    options = FlowOptions(rtol=configuration["tolerance"], atol=configuration["tolerance"])
    finished: list[Any] = []
    unsaved: list[Any] = []

    def keep() -> None:
        if keeper is not None and unsaved:
            keeper.add(to_dataset(unsaved, options.times))
            unsaved.clear()

    def work(put: Any, progress: Any) -> None:
        for _, run in fit_each(task, waiting, **start_of(configuration), options=options, watch=progress):
            put(run)

    try:
        saved = time.monotonic()
        for run in _in_background(work, len(waiting), quiet):
            finished.append(run)
            unsaved.append(run)
            if time.monotonic() - saved > 2:
                keep()
                saved = time.monotonic()
        keep()
    except KeyboardInterrupt:
        keep()
        kept = "kept in " + str(out) if out is not None else "not kept: there is no --out"
        sys.stderr.write(f"\nInterrupted: {len(finished)} of {len(waiting)} runs finished, {kept}.\n")
        sys.stderr.flush()
        os._exit(130)  # a compilation under way in the worker thread cannot be interrupted otherwise
    rows = to_dataset(finished, options.times)
    if stored is not None:
        rows = xr.concat([stored, rows], dim="seed", join="outer")
    return rows, reused


def _in_background(work: Any, total: int, quiet: bool) -> Any:
    """Run `work(put, progress)` in a thread and yield what it puts, showing progress; its exception is raised here."""
    import queue
    import threading

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    messages: queue.Queue[tuple[str, Any]] = queue.Queue()

    def run() -> None:
        try:
            work(lambda x: messages.put(("run", x)), lambda p: messages.put(("progress", p)))
            messages.put(("end", None))
        except BaseException as error:
            messages.put(("error", error))

    threading.Thread(target=run, daemon=True).start()
    console = Console(stderr=True, quiet=quiet)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        item = bar.add_task("compiling", total=total)
        while True:
            try:
                what, value = messages.get(timeout=0.1)
            except queue.Empty:
                continue
            if what == "run":
                bar.advance(item)
                yield value
            elif what == "progress":
                bar.update(item, description=f"flow, t ≤ {value.time:.2g}")
            elif what == "error":
                raise value
            else:
                return


def start_of(configuration: dict[str, Any]) -> dict[str, Any]:
    """The options of `fit` that say how starts are drawn; none on the sphere, where they are uniform."""
    return {name: configuration[name] for name in ("init", "init_std") if name in configuration}


def check_start(configuration: dict[str, Any]) -> None:
    """Raise ValueError for a start that cannot be drawn, or a tolerance that cannot be met."""
    start = {**FREE, **start_of(configuration)}
    if start["init"] not in ("gaussian", "glorot"):
        raise ValueError(f"--init is 'gaussian' or 'glorot'; received {start['init']!r}.")
    if not 0 < start["init_std"] < float("inf"):
        raise ValueError(f"--init-std must be a positive number; received {start['init_std']}.")
    if not 1e-13 <= configuration["tolerance"] <= 1e-1:
        raise ValueError(f"--tolerance must lie between 1e-13 and 0.1; received {configuration['tolerance']}.")


def _as_json(configuration: dict[str, Any], rows: xr.Dataset, seconds: float) -> dict[str, Any]:
    return {
        "task": {k: v for k, v in configuration.items() if k != "kind"},
        "seconds": round(seconds, 3),
        "runs": [{key: _plain(rows[key].values[i]) for key in RUN_KEYS} for i in range(rows.sizes["seed"])],
    }


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and value != value else value


def _print_table(configuration: dict[str, Any], rows: xr.Dataset, seconds: float, reused: int) -> None:
    from rich.console import Console

    from understudy.summaries import summarise

    lines = summarise(rows, configuration)
    verdicts = [line.kind + (f" ({line.flat_dimension}-d)" if line.flat_dimension else "") for line in lines]
    labels = [line.label for line in lines]
    theory = any(line.predicted_loss is not None for line in lines)
    console = Console()
    # 46 columns are the numbers and the space between; 10 more if there is a theory.
    if max(map(len, verdicts)) + max(map(len, labels)) + (10 if theory else 0) > console.width - 46:
        verdicts = [verdict.replace(" ", "\n") for verdict in verdicts]
        labels = [on_two_lines(label) for label in labels]
    table = new_table()
    table.add_column("verdict", no_wrap=True)
    table.add_column("label", overflow="fold")
    for name in ("runs", "loss", *(["- theory"] if theory else []), "least λ", "|∇L|", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for line, verdict, label in zip(lines, verdicts, labels, strict=True):
        gap = "" if line.predicted_loss is None else f"{line.loss - line.predicted_loss:.0e}"
        table.add_row(
            verdict,
            label,
            str(line.count),
            f"{line.loss:.9f}",
            *([gap] if theory else []),
            f"{line.least_eigenvalue:.1e}",
            f"{line.gradient_norm:.0e}",
            f"{line.flow_time:.0e}",
        )
    console.print(table)
    again = f", {reused} seeds reused from the store" if reused else ""
    console.print(
        f"{rows.sizes['seed']} runs in {seconds:.1f} s{again}. least λ: least Hessian eigenvalue; |∇L|: largest "
        "gradient norm; time: median flow time.",
        highlight=False,
    )


def _say(text: str) -> None:
    from rich.console import Console

    Console().print(text, soft_wrap=True)
