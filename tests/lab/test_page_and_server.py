"""The page in a real browser: what it exports, a server that is killed and restarted, a notebook that shows it."""

import http.server
import json
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
from browsing import SMALL, ended, fragment, needs_chromium
from running import TOKEN, lab

import understudy as us

pytestmark = needs_chromium

VIEW = """
import asyncio, time
import understudy as us

teacher = us.Teacher([[1.0, 0.2], [-0.3, 0.9]], [1.0, 1.0], "erf")
runs = us.fit(us.Population(teacher, width=1), seeds=2)

async def cell():
    return us.lab.view(runs)

view = asyncio.run(cell())
print(view._repr_html_(), flush=True)
time.sleep(600)
"""


@pytest.mark.thorough
def test_what_is_exported_agrees(page, address, tmp_path):
    page.goto(address + fragment({"teacher": {"kind": "orthonormal", "count": 3, "dim": 4}, "students": 2}))
    _, _, loss = ended(page)
    page.locator("#export summary").click()

    def download(button):
        with page.expect_download() as found:
            page.locator(button).click()
        path = tmp_path / found.value.suggested_filename
        found.value.save_as(path)
        return path

    environment = {**os.environ, "UNDERSTUDY_CACHE": os.environ.get("UNDERSTUDY_TEST_CACHE", str(tmp_path))}
    options = {"capture_output": True, "text": True, "check": True, "env": environment}
    told = subprocess.run([sys.executable, download("#save-python")], **options)
    assert float(told.stdout.split()[0]) == pytest.approx(float(loss), rel=1e-12)
    page.locator("#save-command").click()
    words = page.locator("#exported", has_text="understudy fit").inner_text().split()
    told = subprocess.run([sys.executable, "-m", *words, "--json"], **options)
    assert json.loads(told.stdout)["runs"][0]["loss"] == pytest.approx(float(loss), rel=1e-12)
    assert us.open(download("#save-nc"))[0].loss == pytest.approx(float(loss), rel=1e-12)
    task = us.Population(us.Teacher.orthonormal(3, dim=4), width=2)
    stored = json.loads(download("#save-json").read_text())
    with np.load(download("#save-npz")) as arrays:
        for weights in (stored, arrays):
            network = us.TwoLayer(np.array(weights["incoming"]), np.array(weights["outgoing"]))
            assert float(task.loss(task.flatten(network))) == pytest.approx(float(loss), rel=1e-12)
    assert download("#save-svg").read_text().startswith("<svg")
    assert download("#save-png").read_bytes().startswith(b"\x89PNG")
    assert "#q=" in page.evaluate("() => location.href")


@pytest.mark.thorough
def test_a_run_goes_on_after_a_restart_of_the_server(page):
    with lab() as (address, process):
        port = int(re.search(r":(\d+)/", address).group(1))
        page.goto(address + fragment(SMALL))
        ended(page)
        process.kill()
        page.locator("#status", has_text="lost").wait_for()
        page.locator("#run").click()  # asked while there is no server
    with lab(port):
        page.wait_for_function("() => window.lab.end?.kind === 'minimum'")
        assert ended(page)[0] == "minimum"
    assert TOKEN in address


@pytest.mark.thorough
def test_a_notebook_shows_runs_in_a_frame(page, tmp_path):
    script = tmp_path / "cell.py"
    script.write_text(VIEW)  # as a script without `if __name__ == "__main__"`
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    try:
        (tmp_path / "notebook.html").write_text(f"<!doctype html>{process.stdout.readline()}")
        handler = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), lambda *given: handler(*given, directory=str(tmp_path))
        )
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.goto(f"http://127.0.0.1:{server.server_port}/notebook.html")
        frame = page.frame_locator("iframe")
        frame.locator("#verdict[data-kind='minimum']").wait_for()
        assert frame.locator("[data-seed]").count() == 2
        server.shutdown()
        server.server_close()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_other_pages_cannot_show_the_lab_in_a_frame(page, address):
    page.set_content(f'<!doctype html><iframe src="{address}"></iframe>')
    page.wait_for_timeout(500)
    assert page.frame_locator("iframe").locator("#question").count() == 0
