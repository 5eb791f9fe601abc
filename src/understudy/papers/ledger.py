"""The ledger: every claim with its last measured values, kept in the repository as data.

One file per paper, `papers/results/<paper>.json`, holds the statements of the claims and the last result of each at
each scale. So listing claims imports neither JAX nor the modules of the papers.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from understudy.files import locked, write_json
from understudy.papers.claim import STATEMENT, Scale, Statement
from understudy.papers.measurement import UNMEASURED, Status
from understudy.papers.registry import claims_of, find_paper
from understudy.papers.result import BadRecordError, Result
from understudy.papers.values import jsonable

PACKAGED = Path(__file__).parent / "results"
SCALES: tuple[Scale, ...] = ("quick", "full")


@dataclass(frozen=True)
class Entry(Statement):
    """One claim as the ledger keeps it: what it says, and the last result at each scale."""

    results: dict[Scale, Result] = field(default_factory=dict)

    @classmethod
    def of(cls, claim: Statement) -> "Entry":
        """The entry of a claim that was never measured."""
        return cls(**{name: jsonable(getattr(claim, name)) for name in STATEMENT})

    @property
    def best(self) -> Result | None:
        """The result at the largest scale measured."""
        return self.results.get("full") or self.results.get("quick")

    def row(self, result: Result | None) -> dict[str, Any]:
        """What ``understudy claims --json`` prints of this claim and that result of it."""
        status: Status = result.status if result else "not yet"
        return {
            "paper": self.paper,
            "id": self.id,
            "status": status,
            "paper_value": self.paper_value,
            "measured": result.measured if result else None,
            "tolerance": self.tolerance,
            "where": self.where,
            "statement": self.statement,
            "scale": result.scale if result else None,
            "when": result.when if result else None,
            "version": result.version if result else None,
            "code": (result.code or None) if result else None,
            "settings": result.settings if result else None,
            "seconds": result.seconds if result else None,
        }

    def _to_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in STATEMENT},
            "results": {scale: self.results[scale].to_json() for scale in SCALES if scale in self.results},
        }


def entries(paper: str, directory: Path | None = None) -> tuple[Entry, ...]:
    """The paper's claims with their last results, as stored; read from the code only if there is no file."""
    stored = _read(paper, directory)
    return tuple(Entry.of(claim) for claim in claims_of(paper)) if stored is None else stored


def record(paper: str, results: Iterable[Result] = (), directory: Path | None = None) -> Path:
    """Enter results in the ledger and bring its statements up to date with the code; returns the file.

    Failed results, and those whose data are missing, are not entered: they would replace a measured value by none.
    Results of claims that no longer exist are dropped. Called without results it only brings the statements up to date.
    """
    path = _path(paper, directory)
    path.parent.mkdir(parents=True, exist_ok=True)
    claims = claims_of(paper)
    with locked(path):
        known = {entry.id: entry.results for entry in _read(paper, directory) or ()}
        for result in results:
            if result.paper != paper:
                raise ValueError(f"a result of {result.paper!r} was given for the ledger of {paper!r}")
            if result.status not in UNMEASURED:
                known.setdefault(result.claim, {})[result.scale] = result
        updated = [replace(Entry.of(claim), results=known.get(claim.id, {}))._to_json() for claim in claims]
        write_json(path, {"paper": paper, "claims": updated})
    return path


def outdated(paper: str, directory: Path | None = None) -> list[str]:
    """The claims whose statement in the stored file is not the code's, or that only one of them has."""
    stored = _read(paper, directory)
    if stored is None:
        return []
    of_file = {entry.id: {**entry._to_json(), "results": None} for entry in stored}
    of_code = {claim.id: {**Entry.of(claim)._to_json(), "results": None} for claim in claims_of(paper)}
    return sorted(name for name in of_file | of_code if of_file.get(name) != of_code.get(name))


def _path(paper: str, directory: Path | None) -> Path:
    return (PACKAGED if directory is None else directory) / f"{find_paper(paper).handle}.json"


def _read(paper: str, directory: Path | None) -> tuple[Entry, ...] | None:
    """The stored entries, or None where there is no file."""
    path = _path(paper, directory)
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise BadRecordError(f"{path} is not JSON ({error}); restore it from the repository or delete it") from error
    try:
        return tuple(_entry(kept, str(path)) for kept in stored["claims"])
    except (KeyError, TypeError, AttributeError) as error:
        raise BadRecordError(f"{path} is not a ledger ({error!r}); restore it from the repository") from error


def _entry(kept: dict[str, Any], source: str) -> Entry:
    results = {scale: Result.from_json(stored, source) for scale, stored in kept["results"].items()}
    return Entry(**{**kept, "results": results})
