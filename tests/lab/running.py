"""A lab in a process of its own, for tests of the server and of the page."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

TOKEN = "token-of-the-tests"


@contextmanager
def lab(port=0, *more):
    """Start `understudy lab`, yield (address, process), and end it."""
    command = [sys.executable, "-m", "understudy", "lab", "--no-browser", "--port", str(port), "--token", TOKEN, *more]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    cache = environment.get("UNDERSTUDY_TEST_CACHE")
    if cache:
        environment["UNDERSTUDY_CACHE"] = cache
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    try:
        line = process.stdout.readline()
        address = re.search(r"http://\S+", line)
        assert address, f"the lab printed {line!r} instead of its address"
        yield address.group(), process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
