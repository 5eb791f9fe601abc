"""Seeds collected here and on workers: each computed once, kept when time or space runs out."""

import time

import numpy as np
import pytest
from distributed import LocalCluster

from understudy import plots
from understudy.experiments import Fit, Place, collect_fit, collect_rows
from understudy.experiments import collecting as module
from understudy.experiments.collecting import group_size, in_background, seed_groups
from understudy.results import Runs
from understudy.store import Store

SMALL = Fit(2, 1)


@pytest.fixture(scope="module")
def cluster():
    options = {
        "n_workers": 1,
        "threads_per_worker": 1,
        "processes": False,
        "protocol": "tcp",
        "dashboard_address": None,
    }
    with LocalCluster(**options) as dask:
        yield dask.scheduler_address


def test_a_cluster_computes_what_is_missing_and_here_is_the_same(cluster, tmp_path):
    store, reports = Store(tmp_path), []
    here = collect_fit(SMALL, [0, 1], store)
    there = collect_fit(SMALL, [3, 1, 2, 0], store, place=Place(cluster), progress=reports.append)
    assert (here.reused, there.reused) == (0, 2)
    assert there.runs.seeds == [3, 1, 2, 0]
    assert (reports[-1].done, reports[-1].reused, reports[-1].total) == (2, 2, 4)
    again = collect_fit(SMALL, [0, 1, 2, 3], store, place=Place("tcp://127.0.0.1:9"))  # nothing is left to do
    assert again.reused == 4
    alone = collect_fit(SMALL, [2])
    assert alone.runs[0].loss == pytest.approx(again.runs[2].loss, rel=1e-12)
    assert [p.suffix for p in tmp_path.iterdir()] == [".nc"]


def test_cells_share_a_cluster_and_a_failing_one_is_told(cluster, tmp_path):
    bad = Fit(2, 2, activation="hermite:4", sphere=True, tolerance=1e-13)
    object.__setattr__(bad, "student", -1)  # passes here, fails there
    found = collect_rows([SMALL, bad], [0, 1], Store(tmp_path), place=Place(cluster))
    assert found.rows[0].sizes["seed"] == 2
    assert found.rows[1] is None
    assert {seed for failure in found.failed for seed in failure.seeds} == {0, 1}
    assert "ValueError: student is a positive whole number" in str(found.failed[0])
    assert found.unfinished == {}


@pytest.mark.parametrize("remote", [False, True])
def test_at_the_limit_finished_seeds_are_kept(cluster, tmp_path, monkeypatch, remote):
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.1)
    place = Place(cluster) if remote else None
    found = collect_fit(Fit(12, 10), range(1000), Store(tmp_path), place=place, limit=0.01)
    assert len(found.runs) + len(found.unfinished) == 1000
    assert found.unfinished
    stored = Store(tmp_path).load(Fit(12, 10).configuration())
    assert len(found.runs) == (0 if stored is None else stored.sizes["seed"])


def test_a_full_disk_costs_no_seeds(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "save", full)
    found = collect_fit(SMALL, [0, 1], Store(tmp_path))
    assert found.runs.seeds == [0, 1]
    assert "No space left on device" in found.unsaved


def test_a_stored_fit_is_drawn_from_the_rows_it_has(tmp_path, monkeypatch):
    collect_fit(SMALL, [0], Store(tmp_path))
    outcome = collect_fit(SMALL, [2, 0], Store(tmp_path))
    fresh = outcome.runs.to_dataset()
    assert outcome.rows["seed"].values.tolist() == [2, 0]
    assert set(outcome.rows.data_vars) == set(fresh.data_vars)
    for name in ("loss", "final", "student_teacher", "label"):
        assert np.array_equal(outcome.rows[name].values, fresh[name].values)
    monkeypatch.delattr(Runs, "to_dataset")
    assert plots.fit(outcome.runs, rows=outcome.rows).axes
    assert collect_fit(SMALL, [1]).rows is None


def test_groups_keep_every_worker_busy():
    for seeds, workers in ((320, 100), (10_000, 100), (20, 2), (3, 8)):
        groups = seed_groups(range(seeds), group_size(seeds, workers))
        assert len(groups) >= min(workers, seeds)
        assert sum(map(len, groups)) == seeds
    assert group_size(10**6, 1, most=16) == 16


def test_errors_of_the_background_are_raised_here():
    def produce():
        yield 1
        time.sleep(0.05)
        raise KeyError("lost")

    ticks = []
    items = in_background(produce, lambda: ticks.append(1), seconds=0.01)
    assert next(items) == 1
    with pytest.raises(KeyError, match="lost"):
        next(items)
    assert ticks
