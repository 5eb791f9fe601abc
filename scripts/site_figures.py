"""The figures of the papers' pages, drawn from the results that the ledger holds and from no others.

    python -m scripts.site_figures results/papers [MORE …]

Each directory is one that ``understudy reproduce`` wrote to. For every claim with a figure, the stored result that equals
the ledger's is drawn with the present code into ``docs/images/papers/<paper>/<claim>.png``, small and stamped with the
result it shows. Ends with exit code 1 if a claim's result is in none of the directories, and names it.
"""

import io
import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image, PngImagePlugin

from understudy.papers.claim import Claim
from understudy.papers.figures import drawn
from understudy.papers.ledger import Entry, entries
from understudy.papers.registry import PAPERS, claims_of
from understudy.papers.result import Result
from understudy.plots.style import house_style

IMAGES = Path(__file__).parent.parent / "docs" / "images" / "papers"
DPI = 110
"""Seven inches become 770 pixels, the width of the site's column."""
WIDEST = 1100
"""Pixels of the widest figures."""
COLOURS = 128
STAMP = "understudy-result"


def main(directories: list[Path]) -> int:
    """Draw what the directories hold, and say what is missing."""
    missing = []
    for handle in PAPERS:
        claims = {claim.id: claim for claim in claims_of(handle)}
        for entry in entries(handle):
            if claims[entry.id].figure is None or entry.best is None:
                continue
            if (folder := _holder(entry.best, directories)) is None:
                missing.append(f"{handle}/{entry.id}, {entry.best.scale}, {entry.best.when}")
            else:
                write(claims[entry.id], entry.best, _arrays(folder, entry.best), image(entry))
    for line in missing:
        print(f"not in any of these directories: {line}", file=sys.stderr)
    return 1 if missing else 0


def image(entry: Entry) -> Path:
    """Where the claim's figure is kept."""
    return IMAGES / entry.paper / f"{entry.id}.png"


def shown(entry: Entry) -> Result | None:
    """The ledger's result that the kept figure shows; None without a figure, or if it shows none of the ledger's."""
    path = image(entry)
    if not path.exists():
        return None
    with Image.open(path) as picture:
        stamp = picture.info.get(STAMP)
    return next((result for result in entry.results.values() if _stamp(result) == stamp), None)


def write(claim: Claim, result: Result, data: dict[str, object], path: Path) -> None:
    """Draw the figure as a palette image stamped with its result."""
    buffer = io.BytesIO()
    with house_style():
        figure = drawn(claim, result, data)
        assert figure is not None
        figure.savefig(buffer, format="png", dpi=min(DPI, WIDEST / figure.get_figwidth()))
    picture = Image.open(buffer).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    stamp = PngImagePlugin.PngInfo()
    stamp.add_text(STAMP, _stamp(result))
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, optimize=True, pnginfo=stamp)
    print(f"{path.stat().st_size / 1000:6.1f} kB  {path.relative_to(IMAGES)}")


def _stamp(result: Result) -> str:
    return f"{result.paper}/{result.claim} {result.scale} {result.when}"


def _holder(result: Result, directories: list[Path]) -> Path | None:
    """The first directory that holds exactly this result."""
    for directory in directories:
        path = directory / result.paper / f"{result.claim}-{result.scale}.json"
        if path.exists() and Result.from_json(json.loads(path.read_text(encoding="utf-8")), str(path)) == result:
            return directory
    return None


def _arrays(directory: Path, result: Result) -> dict[str, object]:
    path = directory / result.paper / f"{result.claim}-{result.scale}.npz"
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


if __name__ == "__main__":
    sys.exit(main([Path(argument) for argument in sys.argv[1:]] or [Path("results") / "papers"]))
