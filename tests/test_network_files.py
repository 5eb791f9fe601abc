"""Networks out of stored fits: the best run, and only weights that are those of the input."""

import io
import zipfile

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from understudy.commands.points import read_point
from understudy.data.tables import read_data_arrays
from understudy.network_files import BadNetworkError, read_data, read_network
from understudy.networks.teacher_files import parse_teacher
from understudy.store import Store


def stored(directory, losses, **configuration):
    """A file as `understudy fit` stores it: a student of one neuron and two inputs for each loss."""
    count = len(losses)
    rows = xr.Dataset(
        {
            "incoming": (("seed", "student", "dim"), np.ones((count, 1, 2))),
            "outgoing": (("seed", "student"), np.ones((count, 1))),
            "loss": ("seed", losses),
        },
        coords={"seed": range(count)},
    )
    return Store(directory).save({"kind": "fit", "activation": "relu", **configuration}, rows)


def test_a_run_without_a_loss_is_not_the_best(tmp_path):
    file = stored(tmp_path, [0.3, np.nan, 0.1, 0.2])
    assert read_network(file).configuration["seed"] == 2
    assert read_network(file, 1).configuration["seed"] == 1


def test_where_no_run_has_a_loss_none_is_best(tmp_path):
    file = stored(tmp_path, [np.nan, np.nan])
    with pytest.raises(BadNetworkError, match=r"no best run: the losses of its seeds \[0, 1\].*--seed"):
        read_network(file)
    assert read_network(file, 1).configuration["seed"] == 1


def test_a_damaged_archive_or_another_file_is_explained(tmp_path):
    file = tmp_path / "network.npz"
    np.savez_compressed(file, W1=np.ones((30, 2)), W2=np.ones((1, 30)), inputs=np.ones((50, 2)))
    sound = file.read_bytes()
    middle = sound.index(b"PK\x03\x04", 4) + 60  # in the second array
    file.write_bytes(sound[:middle] + bytes([sound[middle] ^ 0xFF]) * 8 + sound[middle + 8 :])
    one = tmp_path / "one.npy"
    np.save(one, np.ones((3, 2)))
    for broken in (file, one):
        with pytest.raises(BadNetworkError, match="cannot be read as an archive"):
            read_network(broken)
    with pytest.raises(BadNetworkError, match=r"cannot be read as data"):
        read_data(file)


def archive_that_promises_too_much(file, *names):
    """Arrays whose headers promise 8 PB."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**11, 10**4)})
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(f"{name}.npy", stream.getvalue() + bytes(64))
    return file


def test_a_header_that_promises_more_than_fits_into_memory_is_explained(tmp_path):
    network = archive_that_promises_too_much(tmp_path / "network.npz", "W1", "W2")
    with pytest.raises(BadNetworkError, match=r"cannot be read as an archive of weights.*Unable to allocate"):
        read_network(network)
    data = archive_that_promises_too_much(tmp_path / "data.npz", "inputs", "targets")
    with pytest.raises(BadNetworkError, match=r"cannot be read as data.*Unable to allocate"):
        read_data(data)
    with pytest.raises(ValueError, match=r"data.npz cannot be read as an .npz archive of arrays of numbers"):
        read_data_arrays(data)
    teacher = archive_that_promises_too_much(tmp_path / "teacher.npz", "incoming")
    with pytest.raises(ValueError, match="it says that it has more numbers than fit into memory"):
        parse_teacher("teacher.npz", teacher.read_bytes())
    with pytest.raises(ValueError, match=r"A point is .json or .npz with incoming"):
        read_point(teacher)


def test_the_network_of_a_fit_has_its_biases_and_the_student_s_activation(tmp_path):
    rows = xr.Dataset(
        {
            "incoming": (("seed", "student", "dim"), np.ones((1, 2, 3))),
            "outgoing": (("seed", "student"), [[1.0, 2.0]]),
            "bias": (("seed", "student"), [[0.5, -0.5]]),
            "offset": ("seed", [0.25]),
            "loss": ("seed", [0.1]),
        },
        coords={"seed": [0]},
    )
    told = {"kind": "fit", "activation": "erf", "student_activation": "relu"}
    stored = read_network(Store(tmp_path).save(told, rows))
    assert stored.activation == "relu"
    x = np.random.default_rng(0).normal(size=(5, 3))
    expected = np.maximum(x.sum(axis=1)[:, None] + [0.5, -0.5], 0) @ [1.0, 2.0] + 0.25
    np.testing.assert_allclose(np.asarray(stored.network(jnp.asarray(x), "relu"))[:, 0], expected, rtol=1e-14)
