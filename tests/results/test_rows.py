"""Rows of seeds: added, never lost, and padded where some are longer."""

import logging

import numpy as np
import pytest
import xarray as xr

from understudy.results import SeedRows
from understudy.results.rows import join_rows
from understudy.store import Store

TOLD = {"kind": "fit", "a": 1}


def rows(seeds, modes=2):
    data = {
        "x": ("seed", [float(s) for s in seeds]),
        "eigenvalue": (("seed", "mode"), np.ones((len(seeds), modes))),
        "teacher": ("k", [7.0, 8.0]),
    }
    return xr.Dataset(data, coords={"seed": list(seeds)}, attrs={"task": "T"})


def test_rows_are_added_once_each_and_sorted(tmp_path):
    keeper = SeedRows(Store(tmp_path), TOLD)
    assert keeper.missing([0, 3]) == [0, 3]
    keeper.add(rows([3, 1]))
    keeper.add(rows([1, 2], modes=4))
    stored = keeper.load()
    assert list(stored["seed"].values) == [1, 2, 3]
    assert list(stored["x"].values) == [1.0, 2.0, 3.0]
    assert stored["eigenvalue"].shape == (3, 4)
    assert np.isnan(stored["eigenvalue"].values[0, 2:]).all()
    assert stored["teacher"].dims == ("k",)
    assert stored.attrs["task"] == "T"
    assert keeper.missing([0, 1, 2]) == [0]


def test_a_file_that_lacks_variables_counts_as_missing(tmp_path, caplog):
    SeedRows(Store(tmp_path), TOLD).add(rows([0]))
    keeper = SeedRows(Store(tmp_path), TOLD, {"certificate"})
    with caplog.at_level(logging.WARNING):
        assert keeper.missing([0]) == [0]
    assert "has no certificate" in caplog.text


def test_rows_that_cannot_be_stored_wait(tmp_path, monkeypatch):
    keeper = SeedRows(Store(tmp_path), TOLD)
    monkeypatch.setattr("understudy.results.rows.PATIENCE_SECONDS", 1e9)
    keeper.put(rows([0]))
    keeper.put(rows([1]))
    assert keeper.load() is None
    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                keeper.flush()
    keeper.flush()
    assert list(keeper.load()["seed"].values) == [0, 1]


def test_one_part_is_itself():
    xr.testing.assert_identical(join_rows([rows([5])]), rows([5]))
