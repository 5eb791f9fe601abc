"""The table of `fit` on a narrow screen: nothing is cut off."""

from types import SimpleNamespace

import pytest

from understudy.commands.fit import print_runs
from understudy.results.table import Line

CASES = [
    (None, ["perturbed-2-copy-1-average", "3-copy", "other"], ["perturbed-2-copy-", "1-average", "3-copy"]),
    (0.125, ["(1,1,2,2)-copy-average", "3-copy-1-average", "other"], ["(1,1,2,2)-", "copy-average", "3-copy-"]),
]


class FakeRuns(SimpleNamespace):
    task = None

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return SimpleNamespace(parameters=None)


@pytest.mark.parametrize(("theory", "labels", "parts"), CASES)
def test_every_word_and_number_is_there_on_eighty_columns(theory, labels, parts, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    kinds, losses = ["minimum", "strict saddle", "non-strict saddle"], (0.125, 0.25, 0.5)
    lines = [
        Line(kind, label, 1, loss, theory, -1.5e-3, 1.5e-3, 1.5e-3, 2 * (kind == kinds[2]), i, (i,))
        for i, (kind, label, loss) in enumerate(zip(kinds, labels, losses, strict=True))
    ]
    print_runs(FakeRuns(lines=lines), 1.0, 0)
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert max(map(len, printed.split("\n"))) <= 80
    words = printed.split()
    assert all(word in words for kind in kinds for word in kind.split())
    assert all(f"{loss:.9f}" in words for loss in losses)
    assert set(parts) < set(words)
    assert ("theory" in words) == (theory is not None)
