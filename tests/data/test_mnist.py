"""MNIST from a copy, from the cache, fetched: what is right is read, what is wrong or missing is explained."""

import gzip
import hashlib
import runpy

import numpy as np
import pytest

from understudy.data import mnist as data
from understudy.data.errors import MissingDataError, WrongDataError
from understudy.data.mnist import mnist


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    return header + array.tobytes()


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """A tiny stand-in whose hashes are put in the place of the true ones, and a server of its files."""
    rng = np.random.default_rng(0)
    arrays = {
        "x_train": rng.integers(0, 256, (5, 28, 28), np.uint8),
        "y_train": rng.integers(0, 10, 5, np.uint8),
        "x_test": rng.integers(0, 256, (3, 28, 28), np.uint8),
        "y_test": rng.integers(0, 10, 3, np.uint8),
    }
    files = {part: gzip.compress(idx(array), mtime=0) for part, array in arrays.items()}
    monkeypatch.setattr(data, "CONTENT", {p: hashlib.sha256(a.tobytes()).hexdigest() for p, a in arrays.items()})
    named = {p: (data.FILES[p][0], hashlib.sha256(files[p]).hexdigest()) for p in data.PARTS}
    monkeypatch.setattr(data, "FILES", named)
    monkeypatch.delenv("UNDERSTUDY_DATA", raising=False)
    monkeypatch.setenv("UNDERSTUDY_CACHE", str(tmp_path / "cache"))
    served = {f"{named[p][0]}.gz": files[p] for p in data.PARTS}
    return arrays, served


def same(found, arrays):
    for part, array in arrays.items():
        np.testing.assert_array_equal(getattr(found, part), array)


def test_from_npz_by_argument_and_variable(toy, tmp_path, monkeypatch):
    arrays, _ = toy
    np.savez_compressed(tmp_path / "mnist.npz", **arrays)
    same(mnist(tmp_path / "mnist.npz"), arrays)
    same(mnist(tmp_path), arrays)
    monkeypatch.setenv("UNDERSTUDY_DATA", str(tmp_path))
    same(mnist(), arrays)


@pytest.mark.parametrize("zipped", [True, False])
def test_from_idx_files(toy, tmp_path, zipped):
    arrays, served = toy
    for name, content in served.items():
        file = tmp_path / (name if zipped else name.removesuffix(".gz"))
        file.write_bytes(content if zipped else gzip.decompress(content))
    same(mnist(tmp_path), arrays)


def test_missing_data_are_explained_and_nothing_is_fetched(toy, monkeypatch):
    monkeypatch.setattr(data, "_download", lambda url: pytest.fail("fetched without being asked to"))
    with pytest.raises(MissingDataError, match=r"UNDERSTUDY_DATA.*python -m understudy.data"):
        mnist()


def test_fetched_from_a_mirror_over_urls_and_then_kept(toy, tmp_path):
    arrays, served = toy
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    for name, content in served.items():
        (mirror / name).write_bytes(content)
    same(mnist(fetch=True, mirrors=["file:///nowhere/", mirror.as_uri() + "/"]), arrays)
    same(mnist(), arrays)


def test_a_mirror_with_other_bytes_is_refused(toy, tmp_path):
    _, served = toy
    with pytest.raises(MissingDataError, match="SHA-256"):
        mnist(fetch=True, opener=lambda url: b"something else")
    assert not (tmp_path / "cache" / "data").exists()
    calls = []

    def second_is_right(url):
        calls.append(url)
        return served[url.rsplit("/", 1)[1]] if url.startswith("good:") else b"bad"

    same(mnist(fetch=True, mirrors=["bad:/", "good:/"], opener=second_is_right), toy[0])
    assert len(calls) == 8


def test_other_data_are_never_taken(toy, tmp_path):
    arrays, _ = toy
    np.savez_compressed(tmp_path / "mnist.npz", **{**arrays, "x_test": arrays["x_test"][::-1]})
    with pytest.raises(WrongDataError, match=r"x_test .* is not that of MNIST"):
        mnist(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"\x00\x00\x08", b"no idx file at all", gzip.compress(b"\x01\x02\x03\x04", mtime=0)]
)
def test_broken_files_are_explained(toy, tmp_path, content):
    _, served = toy
    for name, good in served.items():
        (tmp_path / name).write_bytes(content if name.startswith("train-images") else good)
    with pytest.raises(WrongDataError, match="not an IDX file"):
        mnist(tmp_path)


def test_a_damaged_gzip_file_is_explained(toy, tmp_path):
    _, served = toy
    for name, good in served.items():
        (tmp_path / name).write_bytes(good)
    victim = tmp_path / f"{data.FILES['x_train'][0]}.gz"
    sound = victim.read_bytes()
    for place in range(10, len(sound), 97):
        victim.write_bytes(sound[:place] + bytes([sound[place] ^ 0xFF]) + sound[place + 1 :])
        with pytest.raises(WrongDataError):
            mnist(tmp_path)


def test_an_npz_without_the_arrays_is_explained(toy, tmp_path):
    np.savez(tmp_path / "mnist.npz", x=np.zeros(3))
    with pytest.raises(WrongDataError, match="x_train, y_train"):
        mnist(tmp_path)


@pytest.mark.parametrize("option", ["UNDERSTUDY_DATA", "UNDERSTUDY_CACHE"])
def test_the_command_says_where_it_was_found(toy, tmp_path, monkeypatch, capsys, option):
    arrays, _ = toy
    monkeypatch.setenv(option, str(tmp_path / "here"))
    place = tmp_path / "here" / ("mnist" if option == "UNDERSTUDY_DATA" else "data/mnist")
    place.mkdir(parents=True)
    np.savez(place / "mnist.npz", **arrays)
    runpy.run_module("understudy.data")
    assert capsys.readouterr().out == f"MNIST is in {place}, verified.\n"


def test_the_true_hashes_are_pinned():
    assert all(len(digest) == 64 for _, digest in data.FILES.values())
    assert data.FILES["x_train"][1].startswith("440fcabf73cc546f")
    assert set(data.CONTENT) == set(data.PARTS)
