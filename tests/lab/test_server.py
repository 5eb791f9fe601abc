"""The server over real sockets: who is refused, what a run sends, and what 1,000 malformed messages do (nothing)."""

import contextlib
import http.client
import io
import json
import os
import random
import signal
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from running import TOKEN, lab

from understudy.lab.question import BadQuestionError, read_question

pytest.importorskip("starlette", reason="the lab's packages are not installed")
pytest.importorskip("uvicorn", reason="the lab's packages are not installed")
client = pytest.importorskip("websockets.sync.client", reason="the lab's packages are not installed")
exceptions = pytest.importorskip("websockets.exceptions")

TINY = {"teacher": {"kind": "orthonormal", "count": 2, "dim": 2}, "students": 1}


def request(address, method, path, body=None, **headers):
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    headers = {"Origin": f"http://{parts.netloc}", **{k.replace("_", "-"): v for k, v in headers.items()}}
    for _ in range(50):
        try:
            connection.request(method, path, body, headers)
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def open_socket(address, token=TOKEN, origin=None):
    parts = urlsplit(address)
    own = f"http://{parts.netloc}"
    return client.connect(f"ws://{parts.netloc}/{token}/socket", origin=own if origin is None else origin)


def converse(socket, message, timeout=240):
    """Send one request; return all messages of its answer."""
    socket.send(json.dumps(message))
    found = []
    while not found or found[-1]["type"] not in ("done", "error", "cancelled"):
        found += [m for m in json.loads(socket.recv(timeout=timeout)) if m["id"] == message["id"]]
    return found


def test_the_page_and_its_parts_are_served_and_nothing_else(address):
    for name in ("", "lab.js", "lab.css", "chart.js", "help.html", "gallery.json"):
        answer, content = request(address, "GET", f"/{TOKEN}/{name}")
        assert answer.status == 200
        assert content
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    for name in ("missing.js", "..%2f__init__.py", "../__init__.py", "%2e%2e/server.py", "lab.js/../../server.py"):
        assert request(address, "GET", f"/{TOKEN}/{name}")[0].status in (403, 404)


@pytest.mark.parametrize("path", ["/", "/wrong-token/", "/wrong-token/lab.js", f"/{TOKEN}x/", "/etc/passwd"])
def test_a_wrong_token_is_refused(address, path):
    answer, content = request(address, "GET", path)
    assert answer.status == 403
    assert b"token" in content


def test_a_foreign_page_is_refused(address):
    assert request(address, "GET", f"/{TOKEN}/", Origin="http://evil.example")[0].status == 403
    assert request(address, "GET", f"/{TOKEN}/", Host="evil.example")[0].status == 403
    assert request(address, "POST", f"/{TOKEN}/code", "{}", Origin="null")[0].status == 403
    for token, origin in ((TOKEN, "http://evil.example"), ("wrong", None)):
        with pytest.raises((exceptions.InvalidStatus, exceptions.ConnectionClosed)):
            open_socket(address, token, origin).recv(timeout=10)


def test_code_is_exported_and_bad_questions_are_named(address):
    answer, content = request(address, "POST", f"/{TOKEN}/code", json.dumps(TINY))
    told = json.loads(content)
    assert answer.status == 200
    assert told["command"].startswith("understudy fit")
    assert "us.Teacher.orthonormal(2, dim=2" in told["python"]
    answer, content = request(address, "POST", f"/{TOKEN}/code", json.dumps({"students": -1}))
    assert (answer.status, "students" in json.loads(content)["message"]) == (400, True)
    assert request(address, "POST", f"/{TOKEN}/code", "x" * 300_000)[0].status == 400


def test_a_run_sends_frames_and_a_verdict(address):
    with open_socket(address) as socket:
        found = converse(socket, {"id": 7, "do": "run", "question": TINY})
    kinds = [message["type"] for message in found]
    assert kinds[0] == "queued"
    assert kinds[-1] == "done"
    frames = [frame for message in found if message["type"] == "frames" for frame in message["frames"]]
    assert len(frames) > 50
    assert [f["t"] for f in frames] == sorted(f["t"] for f in frames)
    end = next(message for message in found if message["type"] == "end")
    assert end["kind"] == "minimum"
    assert end["label"] == "1-average"
    assert end["loss"] == pytest.approx(frames[-1]["loss"], rel=1e-9)


def test_an_impossible_question_gets_a_sentence(address):
    with open_socket(address) as socket:
        (error,) = [m for m in converse(socket, {"id": 1, "do": "run", "question": {"activation": "magic"}})][-1:]
        assert error["type"] == "error"
        assert "magic" in error["message"]


def test_a_thousand_malformed_messages_leave_the_server_running(address):
    rng = random.Random(0)
    pieces = ['{"id":1', '"do":"run"', '"question":', "null", "[", "]", "{", "}", '"', "1e999", "\\ud800", "NaN", ","]
    with open_socket(address) as socket:
        for _ in range(1000):
            text = "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 12)))
            socket.send(text if rng.random() < 0.8 else text.encode())
        assert converse(socket, {"id": 5, "do": "seeds", "question": TINY, "count": 2})[-1]["type"] == "done"
    with open_socket(address) as socket:
        socket.send("x" * 10**6)
        with pytest.raises(exceptions.ConnectionClosed):
            socket.recv(timeout=10)
    assert request(address, "GET", f"/{TOKEN}/")[0].status == 200


def test_a_thousand_wrong_questions_get_a_sentence_each(address):
    rng = random.Random(1)
    values = [
        None,
        True,
        -1,
        0,
        2.5,
        1e300,
        float("inf"),
        "text",
        [],
        {},
        [[1, 2], [3]],
        {"kind": "angles"},
        [[[1]]],
        "é" * 50,
    ]
    names = ["activation", "teacher", "students", "outgoing", "sphere", "bias", "start", "tolerance", "then", "more"]
    asked = []
    while len(asked) < 1000:
        question = {name: rng.choice(values) for name in rng.sample(names, rng.randrange(1, 4))}
        with contextlib.suppress(BadQuestionError):  # some are questions after all
            read_question(question)
            continue
        asked.append(question)
    with open_socket(address) as socket:
        for number, question in enumerate(asked):
            socket.send(json.dumps({"id": number, "do": "run", "question": question}))
        found = []
        while len(found) < len(asked):
            found += json.loads(socket.recv(timeout=60))
        assert {message["type"] for message in found} == {"error"}
        assert all(message["message"] for message in found)
        assert converse(socket, {"id": 5000, "do": "run", "question": TINY})[-1]["type"] == "done"


def test_a_cancelled_run_ends(address):
    with open_socket(address) as socket:
        socket.send(json.dumps({"id": 1, "do": "seeds", "question": TINY, "count": 200}))
        socket.send(json.dumps({"id": 1, "do": "cancel"}))
        found = []
        while not found or found[-1]["type"] not in ("done", "error", "cancelled"):
            found += json.loads(socket.recv(timeout=60))
        assert found[-1]["type"] == "cancelled"


def test_weights_are_packed_and_other_names_are_left_out(address):
    weights = {"incoming": [[1.0, 2.0]], "outgoing": [3.0], "bias": None, "file": [1.0], "../x": [1.0]}
    answer, content = request(address, "POST", f"/{TOKEN}/weights.npz", json.dumps(weights))
    assert answer.status == 200
    with np.load(io.BytesIO(content)) as arrays:
        assert {name: arrays[name].tolist() for name in arrays} == {"incoming": [[1.0, 2.0]], "outgoing": [3.0]}
    for bad in ("[1]", '{"incoming": [[1], [1, 2]]}', '{"incoming": "text"}', "7"):
        assert request(address, "POST", f"/{TOKEN}/weights.npz", bad)[0].status == 400


def test_what_follows_a_split_is_the_same_with_and_without_the_parts_before(address):
    whole = {**TINY, "then": [{"split": 0, "share": 0.3}]}
    with open_socket(address) as socket:
        converse(socket, {"id": 1, "do": "run", "question": TINY})
        begun = converse(socket, {"id": 2, "do": "run", "question": whole})
    with open_socket(address) as socket:
        repeated = converse(socket, {"id": 2, "do": "run", "question": whole})
    assert [m["part"] for m in begun if m["type"] == "begin"] == [1]
    assert [m["part"] for m in repeated if m["type"] == "begin"] == [0, 1]
    assert [m for m in begun if m["type"] == "end"][-1] == [m for m in repeated if m["type"] == "end"][-1]


def test_a_closed_page_leaves_no_work_behind(address):
    with open_socket(address) as socket:
        socket.send(json.dumps({"id": 1, "do": "seeds", "question": {**TINY, "students": 2}, "count": 200}))
        socket.recv(timeout=60)
    busy, until = 1, time.monotonic() + 60
    while busy and time.monotonic() < until:
        with open_socket(address) as socket:
            busy = converse(socket, {"id": 1, "do": "run", "question": {"activation": "magic"}})[0]["busy"]
        time.sleep(0.2)
    assert busy == 0


def workers_of(server):
    """Process ids of the workers, by their command line."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == server.pid and b"understudy.lab.worker" in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to find workers in")
def test_a_killed_server_leaves_no_workers_behind():
    with lab() as (address, server):
        with open_socket(address) as socket:
            socket.send(json.dumps({"id": 1, "do": "seeds", "question": {**TINY, "students": 2}, "count": 200}))
            socket.recv(timeout=60)
            workers = workers_of(server)
            server.kill()
            server.wait()
        assert workers
        until = time.monotonic() + 20
        while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < until:
            time.sleep(0.1)
        assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to find workers in")
def test_a_worker_that_dies_is_reported_and_replaced():
    with lab() as (address, server), open_socket(address) as socket:
        socket.send(json.dumps({"id": 1, "do": "seeds", "question": TINY, "count": 200}))
        assert json.loads(socket.recv(timeout=60))[0]["type"] == "queued"
        before = workers_of(server)
        assert before
        for process in before:
            os.kill(process, signal.SIGKILL)
        found = []
        while not found or found[-1]["type"] not in ("done", "error", "cancelled"):
            found += json.loads(socket.recv(timeout=60))
        assert found[-1]["type"] == "error"
        assert "replaced" in found[-1]["message"]
        assert converse(socket, {"id": 2, "do": "seeds", "question": TINY, "count": 1})[-1]["type"] == "done"
        assert not set(before) & set(workers_of(server))
