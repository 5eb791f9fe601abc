"""Functions for helper processes, in a module that is quick to import."""

import os
import signal
import time
from pathlib import Path


def numbers(item):
    for i in range(item):
        yield os.getpid(), i


def dies_once(item):
    """Yield once; the first process that comes here then dies."""
    yield "begun"
    try:
        Path(item).touch(exist_ok=False)
    except FileExistsError:
        yield "done"
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def always_dies(item):
    os.kill(os.getpid(), signal.SIGKILL)
    yield item


def fails(item):
    raise KeyError(f"item {item}")
    yield


def waits(item):
    print("what is printed must not disturb the messages")
    yield os.getpid()
    time.sleep(60)
