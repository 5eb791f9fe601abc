"""Reproducing: measure the claims of a paper one after another, keep each result at once, write the page."""

import copy
import shutil
import time
import traceback
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from understudy.data.errors import MissingDataError
from understudy.papers import ledger
from understudy.papers.cells import cells_in
from understudy.papers.claim import Claim, Progress, Scale, Settings
from understudy.papers.figures import draw
from understudy.papers.measurement import UNMEASURED, Measurement
from understudy.papers.registry import UnknownNameError, claims_of, find_claims
from understudy.papers.result import Result
from understudy.papers.workspace import Workspace

if TYPE_CHECKING:
    from understudy.experiments.collecting import Place

Stage: TypeAlias = Literal["start", "running", "finished", "kept"]
DEFAULT_OUT = Path("results") / "papers"


@dataclass(frozen=True)
class TimeLeft:
    """An estimate: `seconds` for the claims that can be estimated, and the number of claims that cannot."""

    seconds: float
    unknown: int


@dataclass(frozen=True)
class Event:
    """The progress of a reproduction. `stage`: the claim starts, runs, has finished, or was already finished."""

    stage: Stage
    claim: Claim
    index: int
    total: int
    elapsed: float
    left: TimeLeft
    fraction: float = 0.0
    note: str = ""
    result: Result | None = None


@dataclass
class Reproduction:
    """The results of one call of `reproduce`: one per claim, in the order of the request."""

    paper: str
    scale: Scale
    page: Path
    results: dict[str, Result] = field(default_factory=dict)
    figure_errors: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether no claim failed, every figure was drawn, and no finding differs except those judged to differ."""
        from understudy.papers.findings import findings, judgements

        judged = {
            (name, j.finding) for name, parts in judgements(self.paper).items() for j in parts if j.status == "differs"
        }
        for claim in claims_of(self.paper):
            if claim.id in self.results:
                for found in findings(ledger.Entry.of(claim), self.results[claim.id]):
                    known = (claim.id, found.finding) in judged
                    if found.status == "failed" or (found.status == "differs" and not known):
                        return False
        return not self.figure_errors


Run = Reproduction  # kept for code that uses the old name


def reproduce(
    paper: str,
    claim: str | None = None,
    *,
    full: bool = False,
    out: Path | str | None = None,
    force: bool = False,
    record: bool = False,
    results: Path | None = None,
    progress: Callable[[Event], None] | None = None,
    settings: Settings | None = None,
    place: "Place | None" = None,
) -> Reproduction:
    """Measure a paper's claims, or one of them, and write figures and a page.

    Each result is stored as soon as it is measured. It is not measured again while its settings and the code that
    measures it stay the same. A claim that raises an error is kept as "failed" with its traceback, and is tried again
    the next time. On Ctrl-C the page is written from the finished results, and the interrupt is raised again.

    **Arguments**

    - `paper`: the short name of the paper, such as `copy-average`; `claim`: the id of one claim. Default: all claims.
    - `full`: measure at full scale. Default: quick.
    - `out`: the directory to write to. Default: `results/papers`.
    - `force`: measure stored results again, and do not use the cells that claims have kept.
    - `record`: also enter the results in the ledger; `results`: the ledger's directory. Default: the packaged one.
    - `progress`: called with an `Event` at each step.
    - `settings`: other values of some settings, such as `{"seeds": 32}`, for the claims that have them.
    - `place`: a cluster for the parts of long computations (`understudy.experiments.collecting.Place`).
    """
    from understudy.compilation import keep_compiled_programs
    from understudy.papers.report import write_page

    chosen = find_claims(paper, claim)
    if not chosen:
        raise UnknownNameError(f"The paper {paper!r} has no claims yet: there is nothing to reproduce.")
    scale: Scale = "full" if full else "quick"
    chosen = changed(chosen, scale, settings or {})
    workspace = Workspace(Path(DEFAULT_OUT if out is None else out), paper)
    workspace.folder.mkdir(parents=True, exist_ok=True)
    run = Reproduction(paper, scale, workspace.page)
    keep_compiled_programs()
    if force:
        shutil.rmtree(workspace.cells, ignore_errors=True)
    kept = {} if force else {c.id: stored for c in chosen if (stored := _finished(workspace, c, scale)) is not None}
    expected = _expected_seconds(chosen, scale, workspace, results)
    clock = _Clock(chosen, expected, set(kept), progress)
    try:
        for index, current in enumerate(chosen):
            clock.turn_to(index)
            if current.id in kept:
                result, data = kept[current.id]
            else:
                clock.tell("start")
                with cells_in(workspace.cells, place) as reused:
                    result, data = _measure(current, scale, Progress(clock.running))
                result = replace(result, seconds=round(result.seconds + reused.seconds, 3))
                result, data = _keep(workspace, current, result, data)
            run.results[current.id] = result
            try:
                draw(current, result, data, workspace)
            except Exception:
                run.figure_errors[current.id] = traceback.format_exc()
                _drop_figures(workspace, current, scale)
            if record:
                ledger.record(paper, [result], results)
            clock.tell("kept" if current.id in kept else "finished", 1.0, result=result)
    finally:
        run.seconds = clock.elapsed
        at_page = {c.id: c for c in (*claims_of(paper), *chosen)}
        write_page(workspace, tuple(at_page.values()), scale, run.figure_errors)
    return run


def changed(claims: Sequence[Claim], scale: Scale, settings: Settings) -> tuple[Claim, ...]:
    """The claims with other settings, each with those that it has; an error if none has one of them."""
    if not settings:
        return tuple(claims)
    found: list[Claim] = []
    used: set[str] = set()
    errors: list[str] = []
    for claim in claims:
        for name, value in settings.items():
            try:
                claim = claim.with_settings(scale, {name: value})
                used.add(name)
            except ValueError as error:
                errors.append(str(error))
        found.append(claim)
    if set(settings) - used:
        raise UnknownNameError(errors[0])
    return tuple(found)


def time_left(coming: Sequence[float | None], running: tuple[float | None, float, float] | None) -> TimeLeft:
    """Estimate the remaining time from the times of earlier runs and from the progress of the running claim.

    **Arguments**

    - `coming`: for each claim to come, its seconds in an earlier run, or None.
    - `running`: for the running claim, its seconds in an earlier run (or None), the seconds so far, and the share done.

    >>> time_left([10.0, None], (None, 3.0, 0.25))
    TimeLeft(seconds=19.0, unknown=1)
    """
    seconds = sum(known for known in coming if known is not None)
    unknown = sum(known is None for known in coming)
    if running is not None:
        earlier, taken, fraction = running
        if fraction > 0.05:  # below that, the extrapolation is mostly compile time
            seconds += taken * (1 - fraction) / fraction
        elif earlier is not None:
            seconds += max(earlier - taken, 0.0)
        else:
            unknown += 1
    return TimeLeft(seconds, unknown)


class _Clock:
    """Reports to the caller's `progress` how much is done and how long the rest will take."""

    def __init__(
        self,
        claims: Sequence[Claim],
        expected: Mapping[str, float | None],
        kept: Set[str],
        progress: Callable[[Event], None] | None,
    ):
        self.claims, self.expected, self.kept, self.progress = claims, expected, kept, progress
        self.started = time.perf_counter()
        self.turn_to(0)

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.started

    def turn_to(self, index: int) -> None:
        """The claim at this index is next."""
        self.index, self.since = index, time.perf_counter()

    def tell(self, stage: Stage, fraction: float = 0.0, note: str = "", result: Result | None = None) -> None:
        if self.progress is None:
            return
        claim, taken = self.claims[self.index], time.perf_counter() - self.since
        coming = [self.expected[c.id] for c in self.claims[self.index + 1 :] if c.id not in self.kept]
        over = stage in ("finished", "kept")
        left = time_left(coming, None if over else (self.expected[claim.id], taken, fraction))
        self.progress(Event(stage, claim, self.index, len(self.claims), self.elapsed, left, fraction, note, result))

    def running(self, fraction: float, note: str) -> None:
        self.tell("running", fraction, note)


def _measure(claim: Claim, scale: Scale, progress: Progress) -> tuple[Result, dict[str, object]]:
    """Run the claim. An error becomes a failed result; missing data become a result "not yet"."""
    since, processor = time.perf_counter(), time.process_time()
    try:
        measurement = claim.measure(copy.deepcopy(dict(claim.settings(scale))), progress)
        if not isinstance(measurement, Measurement):
            raise TypeError(f"measure must return a Measurement; received {type(measurement).__name__}")
        taken = time.perf_counter() - since, time.process_time() - processor
        return Result.of(claim, scale, measurement, *taken), dict(measurement.data)
    except ConnectionError:  # no cluster at that address: an error of the user, not of the claim
        raise
    except MissingDataError as error:
        return Result.of_failure(claim, scale, str(error), time.perf_counter() - since, "not yet"), {}
    except Exception:
        return Result.of_failure(claim, scale, traceback.format_exc(), time.perf_counter() - since), {}


def _keep(
    workspace: Workspace, claim: Claim, result: Result, data: dict[str, object]
) -> tuple[Result, dict[str, object]]:
    """Store the result and read it back, so that every figure is drawn from what is stored."""
    try:
        workspace.save(claim, result, data)
    except (ValueError, TypeError):  # arrays that cannot be stored: an error in the claim
        result = Result.of_failure(claim, result.scale, traceback.format_exc(), result.seconds)
        workspace.save(claim, result, {})
    stored = workspace.load(claim, result.scale)
    assert stored is not None
    return stored


def _finished(workspace: Workspace, claim: Claim, scale: Scale) -> tuple[Result, dict[str, object]] | None:
    stored = workspace.load(claim, scale)
    return None if stored is None or stored[0].status in UNMEASURED else stored


def _expected_seconds(
    claims: Sequence[Claim], scale: Scale, workspace: Workspace, results: Path | None
) -> dict[str, float | None]:
    """How long each claim took before with these settings: in this workspace, or else estimated from the ledger."""
    here = {claim.id: workspace.seconds(claim, scale) for claim in claims}
    recorded = expected_seconds(claims, scale, results)
    return {name: recorded[name] if seconds is None else seconds for name, seconds in here.items()}


def expected_seconds(claims: Sequence[Claim], scale: Scale, results: Path | None = None) -> dict[str, float | None]:
    """How long each claim takes, from the ledger's time at that scale and how the cost grows with the settings."""
    found: dict[str, float | None] = {claim.id: None for claim in claims}
    recorded = {entry.id: entry.results.get(scale) for entry in ledger.entries(claims[0].paper, results)}
    for claim in claims:
        before = recorded.get(claim.id)
        if before is not None and isinstance(before.settings, dict):
            # A result that was recorded with settings of another form says nothing about the cost of these.
            with suppress(KeyError, TypeError, ZeroDivisionError):
                # Quick runs use little more than one process, and its processor time is that of an idle machine.
                idle = before.processor_seconds if scale == "quick" else 0.0
                found[claim.id] = (idle or before.seconds) * claim.relative_cost(claim.settings(scale), before.settings)
    return found


def _drop_figures(workspace: Workspace, claim: Claim, scale: Scale) -> None:
    """Delete an older figure: next to a newer result it would mislead."""
    for suffix in (".png", ".svg"):
        workspace.figure(claim, scale, suffix).unlink(missing_ok=True)
