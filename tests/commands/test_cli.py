"""The command line as a user meets it: real processes, real files."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import pytest
import typer
import xarray as xr
from typer.testing import CliRunner

from understudy.cli import app
from understudy.store import Store

SMALL = ["fit", "--teacher", "3", "--student", "2", "--seeds", "3"]


def understudy(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "understudy", *arguments], capture_output=True, text=True, timeout=300, **options
    )


def test_help_imports_no_array_library():
    code = (
        "import sys, typer.testing; from understudy.cli import app;"
        "r = typer.testing.CliRunner().invoke(app, ['--help']); assert 'fit' in r.output;"
        "print([m for m in ('jax', 'numpy', 'scipy', 'xarray', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_that_it_accepts_and_json(name):
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert "--json" in options
    (example,) = re.findall(r"Example: `understudy ([^`]+)`", " ".join(COMMANDS[name].help.split()))
    command, *words = shlex.split(example)
    assert command == name
    assert {word for word in words if word.startswith("--")} <= options


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--activation", "sine"], "Unknown activation 'sine'. Available: erf, relu"),
        (["--activation", "tanh:-1"], "positive number"),
        (["--teacher", "9", "--dim", "4"], "9 orthonormal vectors need at least 9 dimensions; received --dim 4"),
        (["--student", "0"], "--student is a positive whole number of neurons; received 0"),
        (["--seeds", "5-"], "--seeds is a number, a list or a range; received '5-'"),
        (["--init", "glorot", "--init-std", "0.3"], "received --init glorot and --init-std 0.3. Leave --init-std out"),
        (["--times", "0.1,soon"], "--times is a number or several separated by commas"),
        (["--times", "1,0.1"], "Snapshot times are increasing"),
        (["--limit", "0"], "--limit is a positive number of seconds"),
        (["--jobs", "0"], "--jobs is a number of processes, at least 1; received 0"),
        (["--teacher", "none.json"], "Cannot read the teacher in none.json: No such file"),
        (["--continue", "none.nc"], "none.nc"),
        (["--cluster", "tcp://a:1", "--scheduler-file", "b"], "Give cluster or scheduler_file, not both"),
        (["--seeds", "none"], "--seeds is a number, a list or a range; received 'none'"),
        (["--init-std", "-1"], "--init-std must be a positive number; received -1"),
        (["--outgoing", "frozen"], "--outgoing is 'trained' or 'fixed'; received 'frozen'"),
        (["--sphere", "--outgoing", "fixed"], "received --sphere and --outgoing fixed. Leave --outgoing out"),
        (["--sphere", "--init", "glorot"], "received --sphere and --init glorot. Leave --init out"),
        (["--sphere", "--init-std", "0.1"], "received --sphere and --init-std 0.1. Leave --init-std out"),
    ],
)
def test_bad_input_exits_2_with_a_clear_message(arguments, message, tmp_path):
    done = CliRunner().invoke(app, ["fit", *arguments, "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--teacher", "5000", "--student", "5000"],
        ["--teacher", "100000"],
        ["--seeds", "1000000000000"],
        ["--seeds", "0-1000000000000"],
        ["--dim", "1000000000000"],
        ["--dim", "1000000000"],
        ["--activation", "tanh:1e8"],
        ["--activation", "tanh:1e300"],
    ],
)
def test_a_request_that_cannot_work_is_refused_with_numbers(arguments):
    done = CliRunner().invoke(app, ["fit", *arguments])
    assert done.exit_code == 2
    assert re.search(r"[0-9,]+ GB of memory; this machine has|at most 10,000,000|steep", done.output)


def test_a_grid_that_cannot_work_is_refused_with_numbers(tmp_path):
    done = CliRunner().invoke(app, ["sweep", "--teacher", "1-100000", "--student", "1-1000", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "100,000,000 cells; a sweep has at most 100,000" in done.output


@pytest.mark.thorough
def test_fit_on_the_sphere(tmp_path):
    hermite = ["fit", "--sphere", "--activation", "hermite:4", "--teacher", "2", "--student", "2", "--seeds", "2"]
    done = CliRunner().invoke(app, [*hermite, "--json", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["task"]["sphere"] is True
    assert "init_std" not in told["task"]
    assert len(told["runs"]) == 2
    assert len(list(tmp_path.glob("fit-*.png"))) == 1


def fit(*arguments):
    done = CliRunner().invoke(app, [*SMALL[:-1], *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_fit_tells_every_run():
    told = json.loads(fit("2", "--json"))
    assert [(r["kind"], r["label"]) for r in told["runs"]] == [("minimum", "1-copy-1-average")] * 2


@pytest.mark.thorough
def test_fit_stores_reuses_extends_and_notices_damage(tmp_path):
    told = json.loads(fit("3", "--out", str(tmp_path), "--json"))
    assert set(told) == {"task", "seconds", "runs"}
    assert set(told["runs"][0]) == {
        "seed", "loss", "gradient_norm", "least_eigenvalue", "index", "kind", "label", "flow_time",
    }  # fmt: skip
    assert [r["label"] for r in told["runs"]] == ["1-copy-1-average"] * 3
    (file,) = tmp_path.glob("*.nc")
    assert file.with_suffix(".png").exists()
    assert file.with_suffix(".svg").exists()
    with xr.open_dataset(file) as plain:
        assert list(plain["seed"].values) == [0, 1, 2]
    stamp = file.stat().st_mtime_ns
    assert "3 seeds reused" in fit("3", "--out", str(tmp_path))
    assert file.stat().st_mtime_ns == stamp
    more = fit("0-3", "--out", str(tmp_path))
    assert "4 runs" in more
    assert "3 seeds reused" in more
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    redone = json.loads(fit("3", "--out", str(tmp_path), "--json"))
    assert [(r["seed"], r["label"]) for r in redone["runs"]] == [(i, "1-copy-1-average") for i in range(3)]


def _started(tmp_path):
    # A shell's background jobs ignore interrupts, and so would the process if the tests run in one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command = [sys.executable, "-m", "understudy", "fit", "--teacher", "8", "--student", "4", "--seeds", "5000"]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    return process


@pytest.mark.thorough
def test_interrupt_ends_within_two_seconds_and_keeps_what_is_finished(tmp_path):
    process = _started(tmp_path)
    limit = time.monotonic() + 240
    while not list(tmp_path.glob("*.nc")) and time.monotonic() < limit:
        time.sleep(0.05)
    begun = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    waited = time.monotonic() - begun
    assert process.returncode == 130, errors
    assert "Interrupted" in errors
    assert waited < 2 + 2 * os.getloadavg()[0], "two seconds on an idle machine"
    (entry,) = Store(tmp_path).entries()
    assert Store(tmp_path).load(entry).sizes["seed"] >= 1


@pytest.mark.thorough
def test_kill_leaves_a_store_that_opens_and_resumes(tmp_path):
    process = _started(tmp_path)
    limit = time.monotonic() + 240
    while not list(tmp_path.glob("*.nc")) and time.monotonic() < limit:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    (entry,) = Store(tmp_path).entries()
    done = [int(s) for s in Store(tmp_path).load(entry)["seed"].values]
    assert done
    seeds = ",".join(f"{s}-{s}" for s in done)
    command = ["fit", "--teacher", "8", "--student", "4", "--seeds", seeds, "--out", str(tmp_path)]
    assert f"{len(done)} seeds reused" in understudy(*command).stdout
