"""Work shared with helper processes: complete, repeated where a helper dies, and over when its parent is."""

import os
import signal
import subprocess
import sys
import time

import pytest
import shared_work

from understudy.processes import share


def is_gone(pid, seconds=10.0):
    """Whether a process ends within this time (a zombie of another parent counts as ended)."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat") as status:
                if status.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("take_part", [True, False])
def test_every_value_of_every_item_comes_once(take_part):
    found = list(share(shared_work.numbers, [3, 1, 0, 2, 4], 2, take_part=take_part))
    values = sorted((position, value) for position, (_, value) in found)
    assert values == [(p, i) for p, count in enumerate([3, 1, 0, 2, 4]) for i in range(count)]
    if not take_part:
        assert os.getpid() not in {pid for _, (pid, _) in found}


def test_helpers_are_kept_for_the_next_call():
    first = {pid for _, (pid, _) in share(shared_work.numbers, [1], 1, take_part=False)}
    assert first == {pid for _, (pid, _) in share(shared_work.numbers, [1], 1, take_part=False)}


def test_helpers_start_only_if_they_are_worthwhile():
    asked = []

    def worthwhile(done, waiting, seconds):
        asked.append((done, waiting))
        return False

    found = list(share(shared_work.numbers, [2, 1], 1, worthwhile=worthwhile))
    assert {pid for _, (pid, _) in found} == {os.getpid()}
    assert asked[0] == (0, 2)
    assert asked[-1] == (3, 0)


def test_an_item_is_computed_again_if_its_helper_dies(tmp_path):
    found = list(share(shared_work.dies_once, [str(tmp_path / "died")], 1, take_part=False))
    assert found == [(0, "begun"), (0, "begun"), (0, "done")]
    with pytest.raises(RuntimeError, match=r"3 helper processes died.*jobs=1"):
        list(share(shared_work.always_dies, [0], 1, take_part=False))


def test_exceptions_of_helpers_are_raised_here():
    with pytest.raises(KeyError, match="item 5") as caught:
        list(share(shared_work.fails, [5], 1, take_part=False))
    assert "shared_work.py" in caught.value.__notes__[0]


def test_what_cannot_be_pickled_is_computed_here():
    lock = __import__("threading").Lock()
    found = list(share(lambda item: shared_work.numbers(1 + lock.locked()), [1, 1], 1, take_part=False))
    assert {pid for _, (pid, _) in found} == {os.getpid()}


def test_busy_helpers_end_when_the_iterator_is_closed():
    outcomes = share(shared_work.waits, [0], 1, take_part=False)
    _, pid = next(outcomes)
    assert pid != os.getpid()
    outcomes.close()
    assert is_gone(pid)


def test_helpers_end_when_their_parent_is_killed(tmp_path):
    """The script has no `if __name__ == "__main__":`, so it would start itself again if helpers imported it."""
    script = tmp_path / "script.py"
    script.write_text(
        "import shared_work\nfrom understudy.processes import share\n"
        "for _, pid in share(shared_work.waits, [0], 1, take_part=False):\n    print(pid, flush=True)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as parent:
        helper = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    assert is_gone(helper)
