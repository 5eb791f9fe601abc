"""Progress without a terminal: a line now and then on standard error, and none for quick work."""

import pytest

from understudy.commands import progress
from understudy.commands.options import translate
from understudy.experiments.collecting import CollectProgress


def test_lines_come_now_and_then(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.reporting("seeds") as reporter:
        for second in range(101):
            now[0] = float(second)
            reporter.collecting(CollectProgress(second, 3, 0, 203, second, "flow, t ≤ 10"))
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert lines[0] == "13 of 203 seeds after 10 s, flow, t ≤ 10, 3 stored before, about 190 s left"
    assert [int(line.split(" s")[1].split()[-1]) for line in lines] == [10, 15, 23, 35, 53, 80]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("init_std must be positive; received -1.", "--init-std must be positive; received -1."),
        ("Too wide: use fewer. width=9 is too many.", "Too wide: use fewer. --student 9 is too many."),
        ("received init='glorot' and init_std=0.3.", "received --init glorot and --init-std 0.3."),
        ("The initial point; received dim=4", "The initial point; received --dim 4"),
    ],
)
def test_arguments_become_options(message, said):
    options = {"init_std": "--init-std", "init": "--init", "width": "--student", "dim": "--dim"}
    assert translate(ValueError(message), options) == said


def test_a_long_claim_says_how_far_it_is(monkeypatch):
    import io

    from rich.console import Console

    from understudy.commands.reproduce import _Screen
    from understudy.papers.registry import claims_of
    from understudy.papers.runner import Event, TimeLeft

    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    claim, said = claims_of("copy-average")[0], io.StringIO()
    screen = _Screen(Console(file=said, width=200))
    screen.show(Event("start", claim, 0, 1, 0.0, TimeLeft(60.0, 0)))
    for second in range(1, 20):
        now[0] = float(second)
        left = TimeLeft(60.0 - second, 0)
        screen.show(Event("running", claim, 0, 1, float(second), left, second / 60, f"width {second}"))
    lines = said.getvalue().splitlines()
    assert [line.split("(")[1].split(")")[0] for line in lines[1:]] == ["width 10", "width 15"]
