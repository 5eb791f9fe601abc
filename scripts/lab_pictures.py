"""Screenshots of the lab's gallery: `python -m scripts.lab_pictures [--all DIRECTORY] [NAME …]`.

Needs the extras `lab` and `plots`, Playwright and Chromium. Writes docs/images/lab-*.png, one small picture of each
entry. With `--all`, it also saves each entry at two widths, light and dark, in a directory, to be looked at.
"""

import argparse
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from understudy.lab.gallery import listing

IMAGES = Path(__file__).parent.parent / "docs" / "images"
TOKEN = "pictures-of-the-lab"
COLOURS = 96
"""Colours of a picture in the documentation: enough for its curves, and a third of the bytes."""


def main(chosen: list[str], directory: Path | None) -> None:
    """Run each entry of the gallery (or the chosen ones) to its end and save the page as images."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "understudy", "lab", "--no-browser", "--token", TOKEN]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = re.search(r"http://\S+", server.stdout.readline())
    assert address is not None
    try:
        with sync_playwright() as running:
            browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
            for entry in listing():
                name = re.sub(r"[^a-z0-9]+", "-", entry["name"].lower().replace("ρ", "rho")).strip("-")
                if chosen and name not in chosen:
                    continue
                page.goto("about:blank")
                page.goto(f"{address.group()}#{entry['fragment']}")
                page.wait_for_selector("#verdict[data-kind]:not(.empty)", timeout=600_000)
                page.wait_for_selector("#stop[disabled]", timeout=600_000)
                page.wait_for_timeout(500)
                page.locator("body").press("End")
                print(f"lab-{name}.png: {page.inner_text('#verdict')!r}", flush=True)
                save_small(page, IMAGES / f"lab-{name}.png")
                if directory is not None:
                    save_all(page, directory, name)
            browser.close()
    finally:
        server.terminate()
        server.wait()


def save_small(page: Any, path: Path) -> None:
    """The page as it is, in few colours."""
    from PIL import Image

    image = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def save_all(page: Any, directory: Path, name: str) -> None:
    """The page at two widths, light and dark."""
    directory.mkdir(parents=True, exist_ok=True)
    for theme in ("light", "dark"):
        for width in (1280, 1920):
            page.set_viewport_size({"width": width, "height": width * 5 // 8})
            page.screenshot(path=directory / f"{name}-{width}-{theme}.png", full_page=True)
        page.locator("#theme").click()
    page.set_viewport_size({"width": 1280, "height": 800})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Screenshots of the lab's gallery.")
    parser.add_argument("names", nargs="*", help="Entries, such as copy-or-average; all unless given.")
    parser.add_argument("--all", type=Path, metavar="DIRECTORY", help="Also save every width and theme here.")
    given = parser.parse_args()
    main(given.names, given.all)
