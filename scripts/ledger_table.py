"""Write the README's table of findings from the ledger: ``python -m scripts.ledger_table``."""

from pathlib import Path

from understudy.papers.findings import VERDICTS
from understudy.papers.ledger import entries
from understudy.papers.registry import PAPERS
from understudy.papers.view import claim_view, counts

README = Path(__file__).parent.parent / "README.md"
SHOWN = tuple(status for status in VERDICTS if status != "failed")
HEAD = f"| paper | claims | {' | '.join(SHOWN)} |"


def table() -> str:
    """One row per paper and one column per status."""
    lines = [HEAD, "|---" * (len(SHOWN) + 2) + "|"]
    for paper in PAPERS:
        listed = entries(paper)
        counted = counts(claim_view(entry, entry.best) for entry in listed)
        numbers = [len(listed), *(counted.get(status, 0) for status in SHOWN)]
        lines.append(f"| {paper} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)


def updated(readme: str) -> str:
    """The README with its table brought up to date."""
    before, _, after = readme.partition(HEAD)
    rest = after.partition("\n\n")[2]
    return f"{before}{table()}\n\n{rest}"


if __name__ == "__main__":
    README.write_text(updated(README.read_text(encoding="utf-8")), encoding="utf-8")
