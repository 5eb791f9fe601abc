"""Notebooks of the tutorials, made from their pages: `python -m scripts.notebooks` writes docs/notebooks.

Text and code are those of the page, so what the tests run is what the notebook holds.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {"theorist": DOCS / "tutorial.md", "engineer": DOCS / "tutorial-engineer.md"}


def notebook(text: str) -> dict[str, Any]:
    """A notebook (format 4.5) with a cell for each block of Python and for the text between them.

    >>> [cell["cell_type"] for cell in notebook("# Title\\n\\n```python\\n1 + 1\\n```\\n")["cells"]]
    ['markdown', 'code']
    """
    cells: list[dict[str, Any]] = []
    for number, part in enumerate(re.split(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)):
        source = part.strip("\n")
        if not source:
            continue
        cell: dict[str, Any] = {"id": f"cell-{len(cells)}", "metadata": {}, "source": source.splitlines(keepends=True)}
        if number % 2:
            cell |= {"cell_type": "code", "execution_count": None, "outputs": []}
        else:
            cell |= {"cell_type": "markdown"}
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def written(page: Path) -> str:
    """The notebook of a page as the text of its file. Links to other pages lead nowhere in a notebook: only words
    stay."""
    text = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]+\)", r"\1", page.read_text())
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)\n*", "", text)
    return json.dumps(notebook(text), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> None:
    """Write all notebooks."""
    place = DOCS / "notebooks"
    place.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (place / f"{name}.ipynb").write_text(written(page))


if __name__ == "__main__":
    main()
