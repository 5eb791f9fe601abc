"""Cells of a claim: in order, on all cores where they are kept, and skipped where they were kept before."""

import pytest
import xarray as xr

from understudy.experiments.collecting import Place
from understudy.papers import Progress
from understudy.papers.cells import cells_in, compute


def square(cell):
    if cell["x"] < 0:
        raise ValueError("a negative cell")
    return xr.Dataset({"square": cell["x"] ** 2})


CELLS = [{"x": x} for x in (3, 1, 2)]


def squares(results):
    return [int(r["square"]) for r in results]


def test_without_a_place_cells_are_computed_here_and_progress_ends_where_it_should():
    told = []
    assert squares(compute(square, CELLS, Progress(lambda f, _: told.append(f)), keep=True, until=0.6)) == [9, 1, 4]
    assert told == sorted(told)
    assert told[-1] == pytest.approx(0.6)


def test_kept_cells_are_not_computed_again(tmp_path):
    with cells_in(tmp_path):
        assert squares(compute(square, CELLS, Progress(), keep=False)) == [9, 1, 4]
        assert not list(tmp_path.iterdir())
        assert squares(compute(square, CELLS, Progress(), keep=True)) == [9, 1, 4]
        before = {p: p.stat().st_mtime_ns for p in tmp_path.glob("*/*.nc")}
        assert len(before) == 3
        assert squares(compute(square, CELLS, Progress(), keep=True)) == [9, 1, 4]
        assert {p: p.stat().st_mtime_ns for p in tmp_path.glob("*/*.nc")} == before


def test_the_seconds_of_stored_cells_are_summed(tmp_path):
    """A run that only reads its cells knows what they cost; before, it counted the reading."""
    with cells_in(tmp_path) as reused:
        compute(square, CELLS, Progress(), keep=True)
        assert reused.seconds == 0.0
    stored = [xr.open_dataset(p).attrs["seconds"] for p in tmp_path.glob("*/*.nc")]
    with cells_in(tmp_path) as reused:
        compute(square, CELLS, Progress(), keep=True)
    assert reused.seconds == pytest.approx(sum(stored))
    assert reused.seconds > 0.0


def test_a_failing_cell_is_told(tmp_path):
    with cells_in(tmp_path), pytest.raises(RuntimeError, match=r"1 of 2 cells failed.*a negative cell"):
        compute(square, [{"x": -1}, {"x": 2}], Progress(), keep=True)


def test_cells_go_to_the_cluster_that_is_named(tmp_path):
    """Also without `keep`; what is finished is kept, so that the next run needs no cluster."""
    from distributed import LocalCluster

    local = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with LocalCluster(protocol="tcp", **local) as c, cells_in(tmp_path, Place(cluster=c.scheduler_address)):
        assert squares(compute(square, CELLS, Progress(), keep=False)) == [9, 1, 4]
    before = {p: p.stat().st_mtime_ns for p in tmp_path.glob("*/*.nc")}
    assert len(before) == 3
    with cells_in(tmp_path):
        assert squares(compute(square, CELLS, Progress(), keep=True)) == [9, 1, 4]
    assert {p: p.stat().st_mtime_ns for p in tmp_path.glob("*/*.nc")} == before
