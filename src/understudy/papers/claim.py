"""A claim of a paper: what it says, where, its value, and the function that measures ours."""

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from understudy.papers.measurement import Measurement
from understudy.papers.values import Json, jsonable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Item = TypeVar("Item")
Scale: TypeAlias = Literal["quick", "full"]
Settings: TypeAlias = Mapping[str, Any]
HANDLE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class Progress:
    """How a running claim reports its progress: `progress(0.3, "k = 7")`, `for k in progress.over(ks)`."""

    def __init__(self, report: Callable[[float, str], None] | None = None):
        self._report = report

    def __call__(self, fraction: float, note: str = "") -> None:
        """Report that this share of the work (0 to 1) is done."""
        if self._report is not None:
            self._report(min(max(float(fraction), 0.0), 1.0), note)

    def over(self, items: Iterable[Item], note: str = "") -> Iterator[Item]:
        """Yield the items one by one, and report after each which share is done."""
        listed = list(items)
        for i, item in enumerate(listed):
            self(i / len(listed), f"{note} {item}" if note else str(item))
            yield item
        self(1.0, note)


@dataclass(frozen=True)
class Statement:
    """What one claim of one paper says, and how ours is compared with it.

    - `paper`: the paper's handle, such as `copy-average`; `id`: the claim's name within the paper, such as
      `one-neuron`.
    - `where`: where in the paper it stands, such as `Thm 5.1, Fig. 3C`; `statement`: what is claimed, in our words.
    - `paper_value`: what the paper prints: text, a number, or a dictionary of named numbers. Never a number of ours.
    - `measured_by`: how ours is measured, in one sentence.
    - `tolerance`: how far the two may be apart, a number or text, which the checks enforce; `tolerance_reason`: why.
    """

    paper: str
    id: str
    where: str
    statement: str
    paper_value: Json
    measured_by: str
    tolerance: Json
    tolerance_reason: str

    def __post_init__(self) -> None:
        for name in ("paper", "id"):
            if not HANDLE.fullmatch(getattr(self, name)):
                raise ValueError(
                    f"a claim's {name} is lower-case words joined by hyphens, such as 'one-neuron'; "
                    f"received {getattr(self, name)!r}"
                )
        for name in STATEMENT:
            if getattr(self, name) is None or not str(getattr(self, name)).strip():
                raise ValueError(f"claim {self.paper}/{self.id} has no {name}; give a number or text")
            jsonable(getattr(self, name), f"{self.id}.{name}")


STATEMENT = tuple(field.name for field in fields(Statement))
"""The fields that the ledger keeps of a claim."""


@dataclass(frozen=True)
class Claim(Statement):
    """A statement, and the function that measures it.

    - `quick`: the settings of a run of seconds; `full`: those at full scale, the paper's or as near to it as an hour on
      one machine allows.
    - `measure`: `measure(settings, progress)` computes and compares; it sees only `quick` or `full`.
    - `figure`: `figure(measurement, figure)` draws on an empty Matplotlib figure, from what was stored: `measured` as
      JSON gives it back, `data` as NumPy arrays.
    - `cost`: how the time of a run grows with the settings, up to a factor; without it, with seeds times epochs.
    """

    quick: Settings
    full: Settings
    measure: Callable[[Settings, Progress], Measurement] = field(repr=False)
    figure: "Callable[[Measurement, Figure], None] | None" = field(default=None, repr=False)
    cost: Callable[[Settings], float] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("quick", "full"):
            if not isinstance(getattr(self, name), Mapping):
                raise TypeError(f"claim {self.paper}/{self.id}: {name} must be a dict of settings")
            jsonable(getattr(self, name), f"{self.id}.{name}")

    def settings(self, scale: Scale) -> Settings:
        """The settings of that scale."""
        return self.full if scale == "full" else self.quick

    def relative_cost(self, settings: Settings, than: Settings) -> float:
        """How many times longer a run with these settings takes than one with those."""
        grows = self.cost or _seeds_and_epochs
        return grows(settings) / grows(than)

    def with_settings(self, scale: Scale, changes: Settings) -> "Claim":
        """The same claim with some settings of that scale changed; a name with a dot reaches into a group of settings.

        Raises `ValueError` for a setting that the claim does not have, and for a value of another type.
        """
        settings = copy.deepcopy(dict(self.settings(scale)))
        for path, value in changes.items():
            *groups, name = path.split(".")
            place: Any = settings
            for group in groups:
                place = place.get(group) if isinstance(place, dict) else None
            if not isinstance(place, dict) or name not in place:
                known = ", ".join(_names(settings))
                raise ValueError(f"{self.paper}/{self.id} has no setting {path!r} at {scale} scale; it has: {known}")
            if not _alike(place[name], value):
                raise ValueError(
                    f"{self.paper}/{self.id}: {path} is like {place[name]!r}; received {value!r}. Give the same type."
                )
            place[name] = value
        return replace(self, full=settings) if scale == "full" else replace(self, quick=settings)


def _seeds_and_epochs(settings: Settings) -> float:
    return float(settings.get("seeds", 1)) * float(settings.get("epochs", 1))


def _names(settings: Any, before: str = "") -> Iterator[str]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _names(value, f"{before}{name}.")
        else:
            yield f"{before}{name}"


def _alike(old: Any, new: Any) -> bool:
    """Whether the new value has the type of the old one: a number for a number, a list for a list."""
    if isinstance(old, bool) or isinstance(new, bool):
        return isinstance(old, bool) and isinstance(new, bool)
    if isinstance(old, int):
        return isinstance(new, int) and (new >= 1 or old < 1)
    if isinstance(old, float):
        return isinstance(new, int | float)
    return type(old) is type(new)
