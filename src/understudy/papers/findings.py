"""Findings: what a measurement shows of a claim, part by part, each with a status and its own evidence.

`judgements/PAPER.toml` says how each part of a claim is judged and by which checks. A judgement holds only as long as
its checks agree with it: if the measurement contradicts it, it is shown as "differs", whatever the file says.
"Reproduced" needs the paper's scale: a quick run, a run with fewer seeds than the paper's, and a claim without a
judgement are "reproduced in part" at best.

| status | means |
|---|---|
| reproduced | the paper's own statement, at the paper's scale, checked by something that could fail |
| reproduced in part | smaller scale, fewer seeds, or only in a stated range |
| differs | a simulation or measurement of the paper that we measure differently |
| misprint | a slip in a formula or text that leaves the result standing |
| proof gap | the statement stands or is open; the printed proof does not |
| false as stated | a counterexample, with what holds instead |
| extends | the paper leaves it open; ours is new |
| not yet | no measurement that decides it |
| failed | the computation raised an error |
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from understudy.papers.check import Check
from understudy.papers.ledger import Entry
from understudy.papers.mutations import failing
from understudy.papers.result import Result
from understudy.papers.values import Json, text

Verdict: TypeAlias = Literal[
    "reproduced",
    "reproduced in part",
    "differs",
    "misprint",
    "proof gap",
    "false as stated",
    "extends",
    "not yet",
    "failed",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
MARKS: Mapping[Verdict, str] = dict(zip(VERDICTS, "✓◐≠✎∴✗+…✕", strict=True))
"""How each status is shown on screens and pages."""

JUDGEMENTS = Path(__file__).parent / "judgements"
STANDS: tuple[Verdict, ...] = ("reproduced", "reproduced in part")
PASSING: tuple[Verdict, ...] = ("reproduced", "reproduced in part", "extends")
FAILING: tuple[Verdict, ...] = ("differs", "misprint", "proof gap", "false as stated")
LONGEST_SCALE = 80  # characters of settings that stand for a scale


@dataclass(frozen=True)
class Judgement:
    """How one part of a claim is judged.

    - `finding`: what was found, in a sentence; `status`: one of the table above.
    - `of`: the paper's amounts by the names of settings, such as `{seeds = 32}`; the share is shown, `8 of 32 seeds`,
      and below it nothing is "reproduced". A name with a dot reaches into a group of settings.
    - `scale`: what else is to say of the scale; without it and `of`, the settings of the result.
    - `checks`: how the names of the checks begin that are its evidence; without it, those that no other part names.
    - `paper_value`: what the paper prints of this part; without it, the claim's value.
    - `needs_full`: why a quick run cannot decide this part, if it cannot: it is then "not yet" in a quick run.
    """

    finding: str
    status: Verdict
    scale: str = ""
    checks: tuple[str, ...] = ()
    paper_value: Json = None
    of: Mapping[str, float] = field(default_factory=dict)
    needs_full: str = ""

    def __post_init__(self) -> None:
        if self.status not in VERDICTS or not self.finding.strip():
            raise ValueError(f"a judgement needs a finding and one of {VERDICTS}; received {self!r}")


@dataclass(frozen=True)
class Finding:
    """One part of a claim with its status and evidence."""

    paper: str
    id: str
    finding: str
    status: Verdict
    scale: str
    paper_value: Json
    measured: Json
    check: tuple[Check, ...]

    def to_json(self) -> dict[str, Any]:
        """The finding in JSON types. What a check compares with is called expected: it is not always the paper's
        value.
        """
        checks = [
            {
                "name": c.name,
                "expected": c.paper,
                "measured": c.measured,
                "tolerance": c.tolerance,
                "ok": c.ok,
                "limit": failing(c),
            }
            for c in self.check
        ]
        return {**asdict(self), "check": checks}


def findings(entry: Entry, result: Result | None) -> tuple[Finding, ...]:
    """What this result of the claim shows, part by part; never empty."""
    if result is None or result.status == "not yet":
        return (_finding(entry, Judgement(entry.statement, "not yet"), result, ()),)
    if result.status == "failed":
        return (_finding(entry, Judgement(entry.statement, "failed"), result, ()),)
    parts = judgements(entry.paper).get(entry.id) or _unjudged(entry, result)
    every = (*result.checks, *result.printed)
    named = {check.name for part in parts for check in _named(every, part.checks)}
    rest = tuple(check for check in result.checks if check.name not in named)
    shown = ((part, _named(every, part.checks) if part.checks else rest) for part in parts)
    found = [
        _finding(entry, part, result, evidence)
        for part, evidence in shown
        if evidence or part.status == "not yet" or _left_open(part, result)
    ]
    found.sort(key=lambda finding: finding.status not in STANDS)  # what stands comes first
    return tuple(found) or (_finding(entry, Judgement(entry.statement, "not yet"), result, every),)


@cache
def judgements(paper: str) -> dict[str, tuple[Judgement, ...]]:
    """The judgements of a paper's claims by their ids; a claim without one is judged by its checks alone."""
    path = JUDGEMENTS / f"{paper}.toml"
    if not path.exists():
        return {}
    stored = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        name: tuple(Judgement(**{**part, "checks": tuple(part.get("checks", ()))}) for part in parts)
        for name, parts in stored.items()
    }


def borne_out(status: Verdict, evidence: Sequence[Check]) -> Verdict:
    """The status, if the evidence bears it out; otherwise what the evidence shows.

    >>> borne_out("reproduced", [Check("limit", 2.0, 3.0, 0.1, ok=False)])
    'differs'
    >>> borne_out("misprint", [Check("as printed", 2.0, 2.0, 0.1, ok=True)])
    'reproduced'
    """
    passes = all(check.ok for check in evidence)
    if status in PASSING and not passes:
        return "differs"
    return "reproduced" if status in FAILING and passes else status


def shares(of: Mapping[str, float], settings: Any) -> list[tuple[str, float, float]]:
    """For each amount of the paper its name, ours and the paper's; a list of settings counts by its length.

    >>> shares({"seeds": 32, "task.epochs": 100}, {"seeds": 8, "task": {"epochs": 100}})
    [('seeds', 8, 32), ('epochs', 100, 100)]
    """
    found = []
    for path, paper in of.items():
        ours = settings
        for name in path.split("."):
            ours = ours[name]
        found.append((path.rpartition(".")[2], len(ours) if isinstance(ours, list) else ours, paper))
    return found


def _unjudged(entry: Entry, result: Result) -> tuple[Judgement, ...]:
    """Without a judgement the scale is not compared with the paper's, so a claim that passes is reproduced in part."""
    passes = all(check.ok for check in result.checks)
    parts = [Judgement(entry.statement, "reproduced in part" if passes else "differs")]
    if result.printed:
        parts.append(Judgement(result.erratum_note, "misprint", checks=tuple(c.name for c in result.printed)))
    return tuple(parts)


def _named(checks: Sequence[Check], beginnings: tuple[str, ...]) -> tuple[Check, ...]:
    return tuple(check for check in checks if check.name.startswith(beginnings)) if beginnings else ()


def _finding(entry: Entry, part: Judgement, result: Result | None, evidence: tuple[Check, ...]) -> Finding:
    status = borne_out(part.status, evidence) if evidence else part.status
    if result is not None and _left_open(part, result):
        status = "not yet"
    if status == "reproduced" and result is not None and not _at_scale(part, result):
        status = "reproduced in part"
    paper_value = (
        None if part.status == "extends" else entry.paper_value if part.paper_value is None else part.paper_value
    )
    measured: Json = result.measured if result else None
    if part.checks:
        measured = {check.name: check.measured for check in evidence}
    return Finding(entry.paper, entry.id, part.finding, status, _scale(part, result), paper_value, measured, evidence)


def _left_open(part: Judgement, result: Result) -> bool:
    """Whether the part needs full scale, and this is a quick run."""
    return bool(part.needs_full) and result.scale == "quick"


def _at_scale(part: Judgement, result: Result) -> bool:
    full = result.scale == "full"
    return full and all(ours >= paper for _, ours, paper in shares(part.of, result.settings))


def _scale(part: Judgement, result: Result | None) -> str:
    """The share of the paper's scale in words; of a quick run that it is one."""
    if result is None:
        return part.scale
    if _left_open(part, result):
        return f"needs full scale: {part.needs_full}"
    told = [f"{ours:,g} of {paper:,g} {name}" for name, ours, paper in shares(part.of, result.settings)]
    if result.scale == "quick" and (told or part.scale):
        return ", ".join(["quick settings", *told])
    if told or part.scale:
        return "; ".join(x for x in (", ".join(told), part.scale) if x)
    settings = f"{result.scale}: {text(result.settings)}"
    return settings if len(settings) <= LONGEST_SCALE else settings[:LONGEST_SCALE] + " …"
