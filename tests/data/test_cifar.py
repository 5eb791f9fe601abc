"""The part of CIFAR-10 that is used, read from both formats; other data are refused."""

import numpy as np
import pytest

from understudy.data.cifar import cifar10_part
from understudy.data.errors import MissingDataError, WrongDataError

RNG = np.random.default_rng(0)


def test_the_binary_version_is_read_and_other_data_refused(tmp_path, monkeypatch):
    records = RNG.integers(0, 256, size=(5, 3073), dtype=np.uint8)
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
