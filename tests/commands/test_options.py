"""Options that commands share: a bad `--out` is told before anything is computed, whichever the command."""

import pytest
from typer.testing import CliRunner

from understudy.cli import app
from understudy.commands.options import check_out

WRITING = {
    "fit": [],
    "sweep": [],
    "align": [],
    "split": [],
    "grow": [],
    "layers": ["network.npz"],
    "merge": ["network.npz"],
    "reproduce": ["copy-average/erf-slope"],
}


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.parametrize(
    ("place", "said"), [("file", "is a file"), ("file/below", "is a file"), ("link", "leads nowhere")]
)
def test_a_bad_out_exits_2_before_anything_is_computed(command, place, said, tmp_path):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    done = CliRunner().invoke(app, [command, *WRITING[command], "--out", str(tmp_path / place)])
    assert done.exit_code == 2, done.output
    assert "--out is a directory" in done.output
    assert said in " ".join(done.output.split())
    assert (tmp_path / "file").read_text() == "kept"


def test_a_directory_that_cannot_be_written_to():
    done = CliRunner().invoke(app, ["fit", "--out", "/proc/results"])
    assert done.exit_code == 2, done.output
    assert "--out is a directory to write to; received /proc/results" in done.output


def test_a_good_out_is_left_as_it_is(tmp_path):
    check_out(None)
    check_out(tmp_path)
    check_out(tmp_path / "new" / "one")
    assert list(tmp_path.iterdir()) == []
