"""Values that can be kept: what a result may contain, as JSON and as text for a table."""

from typing import TYPE_CHECKING, Any, TypeAlias

from understudy.files import jsonable as jsonable

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
else:
    Json = Any  # checkers at run time cannot resolve an alias that contains itself


def text(value: Json, digits: int = 6) -> str:
    """The value on one line, numbers to ``digits`` significant digits.

    >>> text({"norm": 0.3333333333, "found": True})
    'norm = 0.333333, found = yes'
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, list):
        return "[" + ", ".join(text(item, digits) for item in value) + "]"
    if isinstance(value, dict):
        return ", ".join(_named(key, item, digits) for key, item in value.items())
    return str(value)


def _named(name: str, value: Json, digits: int) -> str:
    line = text(value, digits)
    if isinstance(value, dict):
        return f"{name} = ({line})"
    return f"{name} {line}" if line.startswith(("≤", "≥", "<", ">", "≈", "±")) else f"{name} = {line}"


def duration(seconds: float) -> str:
    """A length of time to read: ``0.4 s``, ``12 s``, ``3 min 05 s``, ``2 h 10 min``."""
    if seconds < 0.05:
        return "under 0.1 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
