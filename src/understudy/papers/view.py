"""The description of a claim that pages and screens show, rendered by the templates in `templates/`."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.extras import need
from understudy.papers.findings import MARKS, VERDICTS, Finding, Verdict, findings
from understudy.papers.ledger import Entry
from understudy.papers.mutations import failing, mutations
from understudy.papers.result import Result
from understudy.papers.values import Json, duration, text

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
LONGEST_SHOWN = 300  # characters of a value before it is folded away, or cut on the site


def claim_view(entry: Entry, result: Result | None, **more: Any) -> dict[str, Any]:
    """Everything that is shown for one claim and one of its results; `more` is passed to the template."""
    found = findings(entry, result)
    return {
        "entry": entry,
        "result": result,
        "findings": found,
        "statuses": statuses(found),
        "mutation": mutations(entry.paper).get(entry.id),
        **more,
    }


def statuses(found: Iterable[Finding]) -> tuple[Verdict, ...]:
    """The statuses that occur, each once, in the order of the table of statuses."""
    present = {finding.status for finding in found}
    return tuple(status for status in VERDICTS if status in present)


def counts(views: Iterable[Mapping[str, Any]]) -> dict[Verdict, int]:
    """How many findings have each status; statuses that do not occur are left out."""
    counted = Counter(finding.status for view in views for finding in view["findings"])
    return {status: counted[status] for status in VERDICTS if counted[status]}


def marked(status: Verdict) -> str:
    """The status with its mark.

    >>> marked("reproduced")
    '✓ reproduced'
    """
    return f"{MARKS[status]} {status}"


def rows(entry: Entry, results: Sequence[Result | None]) -> list[dict[str, Any]]:
    """What `understudy claims --json` prints of a claim: one object per finding and result."""
    mutation = mutations(entry.paper).get(entry.id)
    told = None if mutation is None else {"check": mutation.check, "because": mutation.because}
    return [
        {
            **entry.row(result),
            **finding.to_json(),
            "settings_of": result.scale if result else None,
            "mutation": told,
        }
        for result in results
        for finding in findings(entry, result)
    ]


def render(template: str, **values: Any) -> str:
    """The text of a page."""
    return environment().get_template(template).render(**values)


@cache
def environment() -> "Environment":
    """The templates with their filters; HTML is escaped, Markdown is escaped by the filter `words`."""
    need("papers")
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(line=text, duration=duration, words=words, cell=cell, marked=marked, failing=failing)
    made.globals.update(longest=LONGEST_SHOWN)
    return made


def cell(value: Json) -> str:
    """A value in a cell of a Markdown table; long ones that are not text are cut."""
    line = text(value)
    if not isinstance(value, str) and len(line) > LONGEST_SHOWN:
        line = line[:LONGEST_SHOWN] + " …"
    return words(line).replace("|", "\\|").replace("\n", " ")


def words(line: str) -> str:
    """Text that Markdown shows as it stands: f* and g_l are not marks of Markdown.

    >>> print(words("f* < g_l"))
    f\\* &lt; g\\_l
    """
    marks = {ord(mark): f"\\{mark}" for mark in "\\[]*_`"}
    return line.translate({**marks, ord("<"): "&lt;"})
