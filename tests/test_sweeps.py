"""Sweeps on real schedulers and worker processes: cells are stored once each, whatever happens to the workers."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from understudy import clusters, sweeps
from understudy.store import Store
from understudy.sweeps import Progress, grid, run

HERE = Path(__file__).parent


# What the workers compute. They import this module, so these are at its top level.


def square(cell):
    log_call(cell)
    return xr.Dataset({"square": cell["i"] ** 2, "worker": os.getpid()})


def die_once(cell):
    """Kills its worker the first time that cell 3 is tried."""
    log_call(cell)
    if cell["i"] == 3 and calls(Path(cell["log"]))[3] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return xr.Dataset({"square": cell["i"] ** 2})


def die_always(cell):
    if cell["i"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return xr.Dataset({"square": cell["i"] ** 2})


class UnpicklableError(Exception):
    def __init__(self, message):
        super().__init__(message)
        self.handle = (item for item in ())


def fail_some(cell):
    match cell["i"]:
        case 1:
            raise UnpicklableError("one is too few")
        case 2:
            sys.exit("two is too many")
        case 3:
            return 3
        case _:
            return xr.Dataset({"i": cell["i"]})


def hang_after_two(cell):
    if cell["i"] >= 2:
        time.sleep(600)
    names = ("OPENBLAS_NUM_THREADS", "NPROC", "XLA_FLAGS")
    return xr.Dataset({name: os.environ[name] for name in names})


def log_call(cell):
    with open(cell["log"], "a") as log:
        log.write(f"{cell['i']}\n")


def calls(log):
    """How often each cell was tried."""
    numbers = [int(line) for line in log.read_text().split()]
    return {number: numbers.count(number) for number in numbers}


# The clusters.


@contextmanager
def process(*command, path=HERE):
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(path), str(HERE), str(HERE.parent), *filter(None, [environment.get("PYTHONPATH")])]
    )
    started = subprocess.Popen(
        [sys.executable, *command],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def await_true(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


@contextmanager
def scheduler(directory):
    """A scheduler on loopback; yields its file."""
    file = directory / "scheduler.json"
    command = ("-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    with process(*command, "--scheduler-file", str(file)):
        await_true(lambda: file.exists() and file.read_text().endswith("}"))
        yield file


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler with two worker processes: its file, its address and the processes."""
    directory = tmp_path_factory.mktemp("cluster")
    with scheduler(directory) as file:
        address = json.loads(file.read_text())["address"]
        worker = ("-m", "dask", "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        worker += ("--local-directory", str(directory))
        with process(*worker) as first, process(*worker) as second:
            from distributed import Client

            with Client(address) as client:
                client.wait_for_workers(2, timeout=30)
            yield file, address, [first, second]


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


# The tests. The one that kills a worker of the shared cluster is the last of those that use it.


def test_grid_is_the_product_of_its_axes():
    cells = grid(activation="erf", k=[2, 3], seed=range(2), std=np.array([0.5]), partition=[(1, 2)])
    assert [(cell["k"], cell["seed"]) for cell in cells] == [(2, 0), (2, 1), (3, 0), (3, 1)]
    assert cells[0] == {"activation": "erf", "k": 2, "seed": 0, "std": 0.5, "partition": (1, 2)}
    assert type(cells[0]["std"]) is float
    with pytest.raises(ValueError, match="'k' is empty"):
        grid(k=[], n=3)


def test_progress_estimates_from_the_pace():
    assert Progress(done=0, skipped=5, failed=0, total=10, seconds=3.0).seconds_left is None
    assert Progress(done=3, skipped=5, failed=1, total=10, seconds=8.0).seconds_left == 2.0
    assert Progress(done=0, skipped=5, failed=0, total=5, seconds=1.0).seconds_left == 0.0


def test_bad_input_is_refused_before_anything_starts(store, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="not both"):
        run(square, grid(i=1), store, cluster="tcp://a:1", scheduler_file=tmp_path / "b")
    with pytest.raises(ValueError, match="workers=0"):
        run(square, grid(i=1), store, workers=0)
    with pytest.raises(ValueError, match=r"\['i'\] is nan"):
        run(square, grid(i=[1, float("nan")]), store)
    with pytest.raises(FileNotFoundError, match="dask scheduler --scheduler-file"):
        run(square, grid(i=1), store, scheduler_file=tmp_path / "absent.json")
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 0.5)
    with pytest.raises(ConnectionError, match=r"No Dask scheduler answers at tcp://127.0.0.1:9.*Start one"):
        run(square, grid(i=1), store, cluster="tcp://127.0.0.1:9")
    assert not store.directory.exists()


def test_cells_are_computed_on_the_cluster_once_each(cluster, store, log):
    file, address, workers = cluster
    reports = []
    cells = grid(i=range(6), log=str(log))
    # Numbers 0 to 3, one of them twice, by the scheduler's address ...
    result = run(square, [*cells[:4], cells[0]], store, cluster=address, progress=reports.append)
    assert (result.completed, result.skipped, result.failed) == (cells[:4], [], [])
    assert [int(dataset["square"]) for dataset in result.datasets()] == [0, 1, 4, 9]
    assert {int(dataset["worker"]) for dataset in result.datasets()} <= {worker.pid for worker in workers}
    assert [report.done for report in reports if report.total == 4][-1] == 4
    assert reports[-1].seconds_left == 0.0
    # ... then all six by its file: four are there.
    result = run(square, cells, store, scheduler_file=file, progress=reports.append)
    assert (result.completed, result.skipped) == (cells[4:], cells[:4])
    assert calls(log) == dict.fromkeys(range(6), 1)
    # Nothing is left to do: no cluster is needed.
    result = run(square, cells, store, cluster="tcp://127.0.0.1:9", progress=reports.append)
    assert (result.completed, result.skipped) == ([], cells)
    assert (reports[-1].done, reports[-1].skipped, reports[-1].total) == (0, 6, 6)
    assert sorted(path.suffix for path in store.directory.iterdir()) == [".nc"] * 6


def test_a_damaged_cell_is_computed_again(cluster, store, log):
    cells = grid(i=range(2), log=str(log))
    run(square, cells, store, cluster=cluster[1])
    store.path(cells[1]).write_bytes(b"damaged")
    result = run(square, cells, store, cluster=cluster[1])
    assert (result.completed, result.skipped) == (cells[1:], cells[:1])
    assert calls(log) == {0: 1, 1: 2}
    assert store.load(cells[1]) is not None


def test_failing_cells_are_reported_and_the_rest_finish(cluster, store):
    cells = grid(i=range(6))
    result = run(fail_some, cells, store, cluster=cluster[1])
    assert result.completed == [cells[i] for i in (0, 4, 5)]
    assert [failure.cell for failure in result.failed] == cells[1:4]
    assert [failure.error for failure in result.failed] == ["UnpicklableError", "SystemExit", "TypeError"]
    assert result.failed[0].message == "one is too few"
    assert "in fail_some" in result.failed[0].traceback
    assert str(result.failed[1]) == '{"i":2}: SystemExit: two is too many'
    assert "received int" in result.failed[2].message
    assert [int(dataset["i"]) for dataset in result.datasets()] == [0, 4, 5]
    assert sum(store.load(cell) is None for cell in cells) == 3


def test_the_client_stores_for_workers_that_do_not_see_the_store(cluster, store, log, monkeypatch, tmp_path):
    @contextmanager
    def probe_elsewhere(store):
        (tmp_path / "probe").touch()
        yield tmp_path / "probe"

    saved = []
    save = Store.save
    monkeypatch.setattr(sweeps, "_probe", probe_elsewhere)
    monkeypatch.setattr(Store, "save", lambda *arguments: saved.append(arguments[1]["i"]) or save(*arguments))
    cells = grid(i=range(3), log=str(log))
    result = run(square, cells, store, cluster=cluster[1])
    assert result.completed == cells
    assert sorted(saved) == [0, 1, 2]
    assert [int(dataset["square"]) for dataset in result.datasets()] == [0, 1, 4]


def test_the_probe_of_a_killed_sweep_is_removed(cluster, store, log):
    store.directory.mkdir()
    left, young = (store.directory / f".probe.{name}.tmp" for name in ("left", "young"))
    for path, age in ((left, 61), (young, 30)):
        path.touch()
        os.utime(path, (time.time() - age,) * 2)
    run(square, grid(i=0, log=str(log)), store, cluster=cluster[1])
    assert not left.exists()
    assert young.exists(), "another sweep may be running"


def test_a_program_that_accepts_and_never_answers_is_given_up(store, monkeypatch):
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"tcp://127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(ConnectionError, match=f"No Dask scheduler answers at {address}: no answer within 0.5 s"):
            run(square, grid(i=1), store, cluster=address)


def test_a_worker_without_this_package_is_named_with_its_error(store, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['understudy'] = None\n")
    with scheduler(tmp_path) as file:
        worker = ("-m", "dask", "worker", "--scheduler-file", str(file), "--no-nanny", "--no-dashboard")
        with process(*worker, "--local-directory", str(tmp_path), path=tmp_path):
            from distributed import Client

            with Client(scheduler_file=str(file)) as client:
                client.wait_for_workers(1, timeout=30)
            with pytest.raises(RuntimeError, match=r"1 of 1 workers cannot compute this.*ModuleNotFoundError.*Install"):
                run(square, grid(i=1), store, scheduler_file=file)


@pytest.mark.thorough
def test_a_killed_worker_costs_only_its_cell_in_flight(cluster, store, log):
    _, address, workers = cluster
    cells = grid(i=range(8), log=str(log))
    run(die_once, cells[:3], store, cluster=address)
    before = {path: path.stat().st_ino for path in store.directory.iterdir()}
    result = run(die_once, cells, store, cluster=address)
    assert sorted(worker.poll() or 0 for worker in workers) == [-signal.SIGKILL, 0], "one of the two was killed"
    assert (result.completed, result.skipped, result.failed) == (cells[3:], cells[:3], [])
    assert [int(dataset["square"]) for dataset in result.datasets()] == [i**2 for i in range(8)]
    assert {path: path.stat().st_ino for path in before} == before, "what was stored is not touched"
    assert calls(log) == {i: 2 if i == 3 else 1 for i in range(8)}


def test_a_cluster_without_workers_is_given_up(store, tmp_path, monkeypatch):
    monkeypatch.setattr(clusters, "PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(clusters, "TICK_SECONDS", 0.2)
    with scheduler(tmp_path) as file:
        result = run(square, grid(i=range(2)), store, scheduler_file=file)
    assert [failure.error for failure in result.failed] == ["ClusterLost"] * 2
    assert "no workers" in result.failed[0].message


@pytest.mark.thorough
def test_a_cell_that_kills_its_workers_is_given_up(store, monkeypatch):
    monkeypatch.setattr(clusters, "ALLOWED_FAILURES", 0)
    before = {name: value for name, value in os.environ.items() if name != "__DASK_PARENT_PID"}
    cells = grid(i=range(5))
    result = run(die_always, cells, store, workers=2)
    assert [(failure.cell, failure.error) for failure in result.failed] == [({"i": 1}, "KilledWorker")]
    assert result.completed == [cells[i] for i in (0, 2, 3, 4)]
    # Dask's own mark aside, the settings meant for the workers do not stay in this process.
    assert {name: value for name, value in os.environ.items() if name != "__DASK_PARENT_PID"} == before


INTERRUPTED = """
import signal, sys
from test_sweeps import hang_after_two
from understudy.store import Store
from understudy.sweeps import grid, run
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run(hang_after_two, grid(i=range(6)), Store(sys.argv[1]), workers=2)
    except KeyboardInterrupt:
        sys.exit(7)
"""


@pytest.mark.thorough
def test_ctrl_c_ends_local_workers_at_once_and_keeps_what_is_finished(store, tmp_path):
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    with process(str(script), str(store.directory)) as sweep:
        await_true(lambda: len(list(store.directory.glob("*.nc"))) == 2)
        time.sleep(0.3)  # until both workers hang
        children = processes_of_session(sweep.pid)
        assert len(children) >= 3
        began = time.monotonic()
        os.killpg(sweep.pid, signal.SIGINT)  # as a terminal does: to the workers too
        assert sweep.wait(timeout=30) == 7
        seconds = time.monotonic() - began
        await_true(lambda: not processes_of_session(sweep.pid))
    assert seconds < 2.0
    assert sorted(entry["i"] for entry in store.entries()) == [0, 1]
    dataset = store.load({"i": 0})
    assert dataset["OPENBLAS_NUM_THREADS"] == dataset["NPROC"] == "1"
    assert "--xla_cpu_multi_thread_eigen=false" in str(dataset["XLA_FLAGS"].values)


def processes_of_session(session):
    """The living processes of a session, by the sixth field of /proc/PID/stat."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found
