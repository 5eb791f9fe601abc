"""CIFAR-10, read from both formats, all batches that a copy has; other data are refused."""

import numpy as np
import pytest

from understudy.data.cifar import cifar10, cifar10_part
from understudy.data.errors import MissingDataError, WrongDataError


def batch(seed, count=5):
    records = np.random.default_rng(seed).integers(0, 256, size=(count, 3073), dtype=np.uint8)
    records[:, 0] %= 10
    return records


def test_the_binary_version_is_read_and_other_data_refused(tmp_path, monkeypatch):
    records = batch(0)
    for name in ("data_batch_1.bin", "test_batch.bin"):
        (tmp_path / name).write_bytes(records.tobytes())
    found = cifar10_part(tmp_path, verified=False)
    assert found.y_train.tolist() == records[:, 0].tolist()
    assert found.x_train[3, 1, 2].tolist() == [int(records[3, 1 + 1024 * c + 32 * 1 + 2]) for c in range(3)]
    with pytest.raises(WrongDataError, match="not that of CIFAR-10"):
        cifar10_part(tmp_path)
    monkeypatch.delenv("UNDERSTUDY_DATA", raising=False)
    with pytest.raises(MissingDataError, match="UNDERSTUDY_DATA"):
        cifar10_part()
    with pytest.raises(MissingDataError, match="elsewhere"):
        cifar10_part(tmp_path / "elsewhere")


def test_all_batches_of_a_copy_are_read(tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    batches = [batch(i) for i in range(1, 6)]
    for i, records in enumerate(batches, 1):
        (folder / f"data_batch_{i}.bin").write_bytes(records.tobytes())
    (folder / "test_batch.bin").write_bytes(batch(9, 7).tobytes())
    found = cifar10(tmp_path, verified=False)
    assert found.y_train.tolist() == np.concatenate(batches)[:, 0].tolist()
    assert (found.x_train.shape, found.x_test.shape) == ((25, 32, 32, 3), (7, 32, 32, 3))
    wrong = batches[4].copy()
    wrong[2, 0] = 77
    (folder / "data_batch_5.bin").write_bytes(wrong.tobytes())
    with pytest.raises(WrongDataError, match="label 77"):
        cifar10(tmp_path, verified=False)
