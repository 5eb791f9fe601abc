"""The table of `fit` on a narrow screen: nothing is cut off."""

import numpy as np
import pytest
import xarray as xr

from understudy.commands.fit import _print_table

CASES = [
    ("softplus", ["perturbed-2-copy-1-average", "3-copy", "other"], ["perturbed-2-copy-", "1-average", "3-copy"]),
    ("erf", ["(1,1,2,2)-copy-average", "3-copy-1-average", "other"], ["(1,1,2,2)-", "copy-average", "3-copy-"]),
]


@pytest.mark.parametrize(("activation", "labels", "parts"), CASES)
def test_every_word_and_number_is_there_on_eighty_columns(activation, labels, parts, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    kinds = ["minimum", "strict saddle", "non-strict saddle"]
    ones = {name: ("seed", np.full(3, 1.5e-3)) for name in ("gradient_norm", "flow_time")}
    rows = xr.Dataset(
        {
            "kind": ("seed", kinds),
            "label": ("seed", labels),
            "loss": ("seed", [0.125, 0.25, 0.5]),
            "flat_dimension": ("seed", [0, 0, 2]),
            "eigenvalue": (("seed", "mode"), np.ones((3, 2))),
            "least_eigenvalue": ("seed", np.full(3, -1.5e-3)),
            **ones,
        },
        coords={"seed": range(3)},
    )
    configuration = {"activation": activation, "outgoing": "trained", "teacher": 6, "student": 4}
    _print_table(configuration, rows, 1.0, 0)
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert max(map(len, printed.split("\n"))) <= 80
    words = printed.split()
    assert all(word in words for kind in kinds for word in kind.split())
    assert all(f"{loss:.9f}" in words for loss in (0.125, 0.25, 0.5))
    assert set(parts) < set(words)
    assert ("theory" in words) == (activation == "erf")
