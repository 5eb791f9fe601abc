"""The core works without any optional library, and says which extra is missing where one is needed."""

import os
import subprocess
import sys

import pytest

from understudy.extras import MODULES

ALONE = """
import importlib.util, sys

missing = set(sys.argv.pop(1).split(","))

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.split(".")[0])

find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name.split(".")[0] in missing else find(name, package)
sys.meta_path.insert(0, Absent())
from understudy.cli import main
main()
"""
OPTIONAL = {module for modules in MODULES.values() for module in modules} | {"pandas"}


def alone(*arguments, missing=OPTIONAL):
    """Run a command in a process in which the `missing` modules cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", ALONE, ",".join(sorted(missing)), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )


@pytest.mark.parametrize(
    "arguments",
    [("fit", "--teacher", "2", "--student", "1", "--seeds", "2", "--json"), ("claims", "few-neurons")],
    ids=["fit", "claims"],
)
def test_the_core_needs_no_extra(arguments):
    done = alone(*arguments)
    assert done.returncode == 0, done.stderr
    assert "minimum" in done.stdout or "one-neuron" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "extras"),
    [
        (("fit", "--out", "results"), "store,plots"),
        (("lab", "--no-browser"), "lab"),
        (("verify", "proof.json"), "proofs"),
        (("compress", "model.pt", "--keep", "0.5"), "torch"),
        (("align", "--teacher", "5", "--seeds", "1", "--epochs", "1"), "store,train"),
    ],
    ids=["fit --out", "lab", "verify", "compress", "align"],
)
def test_a_missing_extra_is_named_before_anything_is_computed(arguments, extras):
    done = alone(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert f"pip install 'understudy[{extras}]'" in done.stderr
    assert len(done.stderr) < 300, "one message, no more"
