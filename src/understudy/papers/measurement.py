"""The outcome of measuring a claim: the numbers, the checks, and the verdict that follows from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from understudy.papers.check import Check
from understudy.papers.values import jsonable

Status: TypeAlias = Literal["reproduced", "differs", "erratum", "failed", "not yet"]
STATUSES: tuple[Status, ...] = get_args(Status)
UNMEASURED: tuple[Status, ...] = ("failed", "not yet")
"""Statuses without a result to keep, record or draw: the computation raised an error, or data are missing."""


def verdict(checks: Sequence[Check], printed: Sequence[Check] = ()) -> Status:
    """The verdict, computed from the checks.

    ========================  =======================  ==============
    ``checks``                ``printed``              verdict
    ========================  =======================  ==============
    one fails                 (any)                    "differs"
    all pass                  none given, or all pass  "reproduced"
    all pass                  one fails                "erratum"
    ========================  =======================  ==============
    """
    if not checks:
        raise ValueError("a verdict needs at least one check; received none: compare something with the paper's value")
    if not all(check.ok for check in checks):
        return "differs"
    return "reproduced" if all(check.ok for check in printed) else "erratum"


@dataclass(frozen=True)
class Measurement:
    """What a claim's ``measure`` returns.

    **Attributes**

    - `checks`: the comparisons that decide the verdict, at least one. If the paper's statement is wrong as printed,
      these are the checks of the corrected statement.
    - `measured`: a summary to compare with the paper's value: a number, text, or a dictionary of them.
    - `data`: arrays for the figure (numbers, booleans, text), kept in an `.npz` file next to the result.
    - `notes`: what a reader should know about the result.
    - `printed`: checks of the statement as printed, if it is suspected to be wrong. If all of them pass, there is no
      erratum, and the verdict says so.
    - `erratum_note`: the corrected statement, with the evidence. Required with `printed`.
    """

    checks: Sequence[Check]
    measured: Any
    data: Mapping[str, Any] = field(default_factory=dict)
    notes: str = ""
    printed: Sequence[Check] = ()
    erratum_note: str = ""

    def __post_init__(self) -> None:
        verdict(self.checks, self.printed)
        jsonable(self.measured, "measured")
        if self.measured is None:
            raise ValueError("measured is None: give the number, text or dict that is set beside the paper's value")
        if bool(self.printed) != bool(self.erratum_note.strip()):
            raise ValueError(
                "an erratum needs both `printed` (checks of the statement as printed) and `erratum_note` (the "
                f"statement corrected); received {len(self.printed)} printed checks and the note {self.erratum_note!r}"
            )

    @property
    def status(self) -> Status:
        """The verdict: "reproduced", "differs" or "erratum"."""
        return verdict(self.checks, self.printed)
