"""A result: what was measured for one claim at one scale, when and with which code, as stored in a file."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, get_args

from understudy import __version__
from understudy.files import content_hash
from understudy.papers.check import Check
from understudy.papers.claim import Claim, Scale
from understudy.papers.measurement import STATUSES, Measurement, Status, verdict
from understudy.papers.provenance import code_key
from understudy.papers.values import Json, jsonable


class BadRecordError(ValueError):
    """A stored file is not what this package writes."""


@dataclass(frozen=True)
class Result:
    """The outcome of measuring one claim at one scale, in JSON types."""

    paper: str
    claim: str
    scale: Scale
    status: Status
    measured: Json
    checks: tuple[Check, ...]
    printed: tuple[Check, ...]
    erratum_note: str
    notes: str
    when: str
    version: str
    settings: Json
    seconds: float
    """How long it took, including the seconds of cells that were stored by an earlier run."""
    error: str = ""
    code: str = ""
    """Names the code that made it (see `provenance`); empty for results that were recorded without it."""
    processor_seconds: float = 0.0
    """Processor time of the process that measured it, which a busy machine does not change; 0 if not recorded."""

    @classmethod
    def of(
        cls, claim: Claim, scale: Scale, measurement: Measurement, seconds: float, processor_seconds: float = 0.0
    ) -> "Result":
        """The result of a measurement made just now."""
        return cls(
            paper=claim.paper,
            claim=claim.id,
            scale=scale,
            status=measurement.status,
            measured=jsonable(measurement.measured, "measured"),
            checks=tuple(measurement.checks),
            printed=tuple(measurement.printed),
            erratum_note=measurement.erratum_note,
            notes=measurement.notes,
            when=datetime.now(UTC).isoformat(timespec="seconds"),
            version=package_version(),
            settings=jsonable(claim.settings(scale)),
            seconds=round(seconds, 3),
            code=code_key(claim.measure),
            processor_seconds=round(processor_seconds, 3),
        )

    @classmethod
    def of_failure(cls, claim: Claim, scale: Scale, error: str, seconds: float, status: Status = "failed") -> "Result":
        """The result of a claim whose computation raised; ``error`` is the traceback's text, or which data are
        missing.
        """
        return cls(
            paper=claim.paper,
            claim=claim.id,
            scale=scale,
            status=status,
            measured=None,
            checks=(),
            printed=(),
            erratum_note="",
            notes="",
            when=datetime.now(UTC).isoformat(timespec="seconds"),
            version=package_version(),
            settings=jsonable(claim.settings(scale)),
            seconds=round(seconds, 3),
            error=error,
            code=code_key(claim.measure),
        )

    def to_json(self) -> dict[str, Any]:
        """The result as JSON types."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Any, source: str) -> "Result":
        """The result that was stored; refuses a verdict that its own checks do not give."""
        try:
            later = {"code": "", "processor_seconds": 0.0}  # older files do not have these
            fields = {name: stored[name] for name in cls.__dataclass_fields__ if name not in later}
            fields |= {name: stored.get(name, default) for name, default in later.items()}
            for name in ("checks", "printed"):
                fields[name] = tuple(Check(**check) for check in stored[name])
        except (KeyError, TypeError) as error:
            raise BadRecordError(f"{source} is not a result of a claim ({error!r}); delete it and reproduce") from error
        result = cls(**fields)
        if result.status not in STATUSES or result.scale not in get_args(Scale):
            raise BadRecordError(f"{source} has status {result.status!r} and scale {result.scale!r}; delete it")
        missing = bool(result.error) and result.status == "not yet"
        given: Status = (
            result.status if missing else "failed" if result.error else verdict(result.checks, result.printed)
        )
        if result.status != given:
            raise BadRecordError(
                f"{source} says {result.claim!r} is {result.status!r}, but its checks give {given!r}: "
                "a verdict is computed, not written; reproduce the claim again"
            )
        return result

    def measurement(self, data: Mapping[str, Any]) -> Measurement:
        """The measurement as stored, for drawing."""
        return Measurement(self.checks, self.measured, data, self.notes, self.printed, self.erratum_note)


def package_version() -> str:
    """The version of Understudy that is running."""
    return __version__


def fingerprint(claim: Claim, scale: Scale) -> str:
    """Name a computation by claim, settings and code: a stored result of another is not reused."""
    return content_hash([claim.paper, claim.id, scale, jsonable(claim.settings(scale)), code_key(claim.measure)])
