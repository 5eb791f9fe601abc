"""Check a built site: every link, image, script and style leads to a file of the site, and every anchor exists.

    python -m scripts.site_links site

Nothing may be loaded from another host; links to other hosts are fine, and are not followed. Ends with exit code 1 and
a list if something is wrong.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""Elements that a browser loads by itself. Of `link`, only styles, icons and the like."""
NOT_LOADED = {"canonical", "next", "prev", "alternate"}


class Page(HTMLParser):
    """The anchors of a page, what it links to and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "__top"}
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser for every element."""
        values = {name: value for name, value in attrs if value}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADED and LOADED[tag] in values and values.get("rel") not in NOT_LOADED:
            self.loads.append(values[LOADED[tag]])


def faults(site: Path) -> list[str]:
    """What is wrong with the site, one line each."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        found += [f"{where} loads {target}" for target in page.loads if urlsplit(target).netloc]
        for target in page.links + page.loads:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            place = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = place / "index.html" if place.is_dir() else place
            if not place.exists():
                found.append(f"{where} links to {target}: no such file")
            elif place in pages and unquote(parts.fragment) not in pages[place].anchors:
                found.append(f"{where} links to {target}: no such anchor")
    return found


def main(directory: str) -> int:
    """Print what is wrong."""
    found = faults(Path(directory))
    print("\n".join(found) or f"All links within {directory} lead somewhere, and nothing is loaded from elsewhere.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
