"""Screenshots of the lab's gallery for the documentation: `python -m scripts.lab_pictures [NAME …]`.

Needs the extra `lab`, Playwright and Chromium. Writes docs/images/lab-*.png.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from understudy.lab.gallery import listing

IMAGES = Path(__file__).parent.parent / "docs" / "images"
TOKEN = "pictures-of-the-lab"


def main(chosen: list[str], width: int = 1280, scheme: str = "light") -> None:
    """Run each entry of the gallery (or the chosen ones) to its end and save the page as an image."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "understudy", "lab", "--no-browser", "--token", TOKEN]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = re.search(r"http://\S+", server.stdout.readline())
    assert address is not None
    try:
        with sync_playwright() as running:
            browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": width, "height": width * 5 // 8}, color_scheme=scheme)
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
                page.screenshot(path=IMAGES / f"lab-{name}.png", full_page=True)
                print(f"lab-{name}.png: {page.inner_text('#verdict')!r}")
            browser.close()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
