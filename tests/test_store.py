"""The store: what is saved is what is loaded, and nothing that happens to a process or a file changes that."""

import hashlib
import json
import logging
import os
import pickle
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr

from understudy import store as store_module
from understudy.store import DamagedFileError, OtherFormatError, Store, canonical_json, configuration_hash

CONFIGURATION = {"kind": "fit", "activation": "erf", "teachers": 8, "init_std": 0.1, "partition": (1, 2, 5)}

# A writer that announces each save; its arguments: the directory, the first number, the step, the number of saves.
WRITER = """
import sys
import numpy as np, xarray as xr
from understudy.store import Store
directory, first, step, count = sys.argv[1], *map(int, sys.argv[2:])
store = Store(directory)
for i in range(first, first + step * count, step):
    store.save({"i": i % 12}, xr.Dataset({"x": ("n", np.full(20_000, float(i % 12)))}))
    print(i, flush=True)
"""


def example() -> xr.Dataset:
    rng = np.random.default_rng(0)
    return xr.Dataset(
        {
            "parameters": (("seed", "parameter"), rng.normal(size=(3, 5))),
            "label": ("seed", ["3-copy-1-average", "", "übrig"]),
            "minimum": ("seed", [True, False, True]),
            "spectrum": ("seed", np.array([1 + 2j, 0, -1j])),
            # Every NaN keeps its bits, the sign included, and -0.0 its sign.
            "odd": ("odd", np.array([np.nan, -np.nan, np.inf, -0.0, 5e-324])),
            "nothing": ("none", np.zeros(0)),
            "steps": ((), np.int32(7), {"unit": "1"}),
        },
        coords={"seed": [4, 5, 6]},
        attrs={"note": "an example", "tolerances": [1e-6]},
    )


def assert_same(loaded: xr.Dataset | None, given: xr.Dataset) -> None:
    assert loaded is not None
    assert set(loaded.variables) == set(given.variables)
    assert set(loaded.coords) == set(given.coords)
    for name, variable in given.variables.items():
        assert loaded[name].dims == variable.dims
        assert loaded[name].attrs == variable.attrs
        if variable.dtype.kind == "U":
            assert loaded[name].values.tolist() == variable.values.tolist()
        else:
            assert loaded[name].dtype == variable.dtype
            assert loaded[name].values.tobytes() == variable.values.tobytes()
    assert loaded.attrs["note"] == given.attrs["note"]


def test_hash_is_the_documented_one_and_stays():
    configuration = {"b": 0.1, "a": [1, True, None, "ü"], "c": {"z": 1e-300, "y": -3}}
    text = '{"a":[1,true,null,"\\u00fc"],"b":0.1,"c":{"y":-3,"z":1e-300}}'
    assert canonical_json(configuration) == text
    assert configuration_hash(configuration) == hashlib.sha256(text.encode()).hexdigest()[:16] == "ebf5a7edab9e049d"


def test_hash_knows_the_value_not_its_container():
    plain = {"a": [1, 2], "x": 0.5, "m": [[1.0], [2.0]]}
    numpy = {"m": np.array([[1.0], [2.0]]), "x": np.float64(0.5), "a": (np.int64(1), np.int32(2))}
    assert configuration_hash(plain) == configuration_hash(numpy)
    assert configuration_hash({"a": 1}) != configuration_hash({"a": 1.0})
    assert configuration_hash({"a": 0.1}) != configuration_hash({"a": np.nextafter(0.1, 1.0)})


@pytest.mark.parametrize(
    ("configuration", "error", "message"),
    [
        ({"std": float("nan")}, ValueError, r"configuration\['std'\] is nan"),
        ({"std": np.array([1.0, np.nan])}, ValueError, r"configuration\['std'\]\[1\] is nan"),
        ({"a": {"b": [np.float64("inf")]}}, ValueError, r"configuration\['a'\]\['b'\]\[0\] is inf"),
        ({"f": print}, TypeError, r"configuration\['f'\] is .* cannot be written as JSON; use"),
        ({"s": {1, 2}}, TypeError, r"configuration\['s'\] is \{1, 2\} of type set"),
        ({"z": 1j}, TypeError, r"of type complex"),
        ({"z": np.array([1j])}, TypeError, r"dtype complex128"),
        ({"a": {3: 1}}, TypeError, r"configuration\['a'\] has the key 3; keys must be strings"),
        ([1], TypeError, r"A configuration is a dictionary of JSON values; received \[1\]"),
    ],
)
def test_refuses_what_has_no_json(configuration, error, message):
    with pytest.raises(error, match=message):
        configuration_hash(configuration)


@pytest.mark.parametrize("kind", ["../evil", "a/b", "", 3, ".hidden"])
def test_refuses_a_kind_that_is_no_file_name(tmp_path, kind):
    with pytest.raises(ValueError, match="begins a file name"):
        Store(tmp_path).path({"kind": kind})


def test_refuses_a_file_as_directory(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="Name another place"):
        Store(tmp_path / "file")


def test_saves_and_loads_every_bit(tmp_path):
    store = Store(tmp_path / "deep" / "store")
    assert not store.directory.exists()
    assert store.load(CONFIGURATION) is None
    given = example()
    path = store.save(CONFIGURATION, given)
    assert path == store.path(CONFIGURATION)
    assert re.fullmatch(r"fit-[0-9a-f]{16}\.nc", path.name)
    assert_same(store.load(CONFIGURATION), given)
    assert_same(store.open(path.name), given)
    assert list(store.entries()) == [json.loads(canonical_json(CONFIGURATION))]
    assert "configuration" not in given.attrs
    assert [entry.name for entry in store.directory.iterdir()] == [path.name]


def test_plain_xarray_opens_it(tmp_path):
    path = Store(tmp_path).save(CONFIGURATION, example())
    with xr.open_dataset(path) as dataset:
        assert_same(dataset.load(), example())
        assert json.loads(dataset.attrs["configuration"])["partition"] == [1, 2, 5]
        assert dataset.attrs["understudy_version"]
        assert dataset.attrs["created"].endswith("+00:00")
        assert dataset.attrs["checksum"] == store_module.checksum(dataset)


def test_a_loaded_dataset_outlives_its_file_and_can_be_saved_again(tmp_path):
    store = Store(tmp_path)
    path = store.save(CONFIGURATION, example())
    loaded = store.load(CONFIGURATION)
    path.unlink()
    assert_same(loaded, example())
    store.save({"other": 1}, loaded)
    assert_same(store.load({"other": 1}), example())


def test_a_configuration_may_be_large(tmp_path):
    # HDF5 limits plain attributes to 64 KiB.
    configuration = {"weights": np.arange(50_000) / 7}
    store = Store(tmp_path)
    store.save(configuration, xr.Dataset({"x": 1.0}))
    assert store.load(configuration) is not None


def test_refuses_a_dataset_that_would_come_back_different(tmp_path, monkeypatch):
    write = xr.Dataset.to_netcdf
    monkeypatch.setattr(
        xr.Dataset, "to_netcdf", lambda self, *args, **options: write(self.astype("float32"), *args, **options)
    )
    with pytest.raises(ValueError, match="does not survive being written as netCDF"):
        Store(tmp_path).save(CONFIGURATION, xr.Dataset({"x": 0.1}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "append", "garbage", "other"])
def test_damage_is_noticed_and_redone(tmp_path, caplog, damage):
    store = Store(tmp_path)
    path = store.save(CONFIGURATION, example())
    content = path.read_bytes()
    if damage == "flip":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    elif damage == "truncate":
        path.write_bytes(content[:-1])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "append":
        path.write_bytes(content + b"\0")
    elif damage == "garbage":
        path.write_bytes(b"not a netCDF file" * 100)
    else:
        os.replace(store.save({"kind": "fit"}, example()), path)
    broken = path.read_bytes()
    assert list(store.entries()) == []
    if damage != "other":
        with pytest.raises(DamagedFileError, match=path.name):
            store.open(path)
    with caplog.at_level(logging.WARNING):
        assert store.load(CONFIGURATION) is None
    assert path.name in caplog.text
    assert path.with_name(path.name + ".damaged").read_bytes() == broken
    assert not path.exists()
    store.save(CONFIGURATION, example())
    assert_same(store.load(CONFIGURATION), example())


def test_a_newer_format_counts_as_missing_and_stays(tmp_path, caplog, monkeypatch):
    store = Store(tmp_path)
    path = store.path(CONFIGURATION)
    monkeypatch.setattr(store_module, "FORMAT", 9)
    assert store.path(CONFIGURATION) != path, "the format is part of the name"
    os.replace(store.save(CONFIGURATION, example()), path)
    monkeypatch.undo()
    with pytest.raises(OtherFormatError, match=r"newer version .* format 9\); this one reads format 2\. Update"):
        store.open(path.name)
    assert store.load(CONFIGURATION) is None
    assert "counts as missing" in caplog.text
    assert path.exists()
    assert list(store.entries()) == []


def test_what_is_not_a_file_is_told_and_passed_over(tmp_path):
    store = Store(tmp_path)
    store.save({"i": 1}, xr.Dataset({"x": 1.0}))
    os.mkfifo(store.path(CONFIGURATION))
    with pytest.raises(OSError, match="is a named pipe"):
        store.load(CONFIGURATION)
    assert list(store.entries()) == [{"i": 1}]
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(NotADirectoryError, match="a link that leads to no directory"):
        Store(tmp_path / "loop")
    store.path({"i": 2}).mkdir()
    with pytest.raises(IsADirectoryError, match="Name another place"):
        store.save({"i": 2}, example())


def test_every_flipped_byte_is_noticed(tmp_path):
    # HDF5 alone overlooks many of these, and never returns from some.
    store = Store(tmp_path)
    path = store.save(CONFIGURATION, example())
    content = path.read_bytes()
    for position in range(0, len(content), 61):
        path.write_bytes(content[:position] + bytes([content[position] ^ 0x40]) + content[position + 1 :])
        with pytest.raises(DamagedFileError):
            store.open(path)


def test_an_error_of_the_system_is_not_taken_for_damage(tmp_path, monkeypatch):
    store = Store(tmp_path)
    path = store.save(CONFIGURATION, example())

    def no_library(*_, **__):
        raise ImportError("no HDF5")

    with monkeypatch.context() as patch:
        patch.setattr(xr, "open_dataset", no_library)
        with pytest.raises(ImportError, match="no HDF5"):
            store.load(CONFIGURATION)
    assert path.exists()
    assert_same(store.load(CONFIGURATION), example())


def test_a_failed_save_keeps_the_old_result_and_leaves_nothing(tmp_path, monkeypatch):
    store = Store(tmp_path)
    path = store.save(CONFIGURATION, example())

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        store.save(CONFIGURATION, xr.Dataset({"x": 1.0}))
    monkeypatch.undo()
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert_same(store.load(CONFIGURATION), example())


def test_what_killed_processes_left_is_removed_after_an_hour(tmp_path):
    old, young = tmp_path / ".fit-0.nc.1.tmp", tmp_path / ".fit-0.nc.2.tmp"
    for path, age in ((old, 3700), (young, 3500)):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age,) * 2)
    store = Store(tmp_path)
    assert not old.exists()
    assert young.exists()
    assert list(store.entries()) == []


def test_a_store_travels_to_workers(tmp_path):
    assert pickle.loads(pickle.dumps(Store(tmp_path))).directory == tmp_path


def start_writer(directory, *arguments):
    command = [sys.executable, "-c", WRITER, str(directory), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def assert_sound(directory, least):
    store = Store(directory)
    entries = list(store.entries())
    assert len(entries) == len(list(directory.glob("*.nc"))) >= least, "every file is whole"
    for entry in entries:
        assert np.all(store.load(entry)["x"].values == entry["i"])
    assert not list(directory.glob("*.damaged"))


@pytest.mark.thorough
def test_kill_9_while_saving_leaves_a_sound_store(tmp_path):
    # The same 12 results over and over: kills fall on first saves and on replacements alike.
    for round_, saves in enumerate((3, 14)):
        with start_writer(tmp_path, 0, 1, 100_000) as writer:
            for _ in range(saves):
                assert writer.stdout.readline()
            time.sleep(0.007 * round_)
            writer.send_signal(signal.SIGKILL)
            reported = saves + len(writer.stdout.read().split())
        assert writer.returncode == -signal.SIGKILL
        assert_sound(tmp_path, min(reported, 12))
    store = Store(tmp_path)
    assert store.load({"i": 3}) is not None
    store.save({"i": 12}, xr.Dataset({"x": 12.0}))


@pytest.mark.thorough
def test_two_processes_write_one_store(tmp_path):
    # The same configurations at the same time, in opposite order.
    writers = [start_writer(tmp_path, 0, 1, 12), start_writer(tmp_path, 23, -1, 12)]
    for writer in writers:
        output, _ = writer.communicate(timeout=60)
        assert writer.returncode == 0
        assert len(output.split()) == 12
    assert_sound(tmp_path, 12)
    assert not list(tmp_path.glob(".*"))
