"""Only this machine's own browser, at the printed address, gets an answer."""

import pytest

from understudy.lab.guard import Guard

GUARD = Guard(8765, "right-token")
OWN = {"host": "127.0.0.1:8765", "origin": "http://127.0.0.1:8765"}


def test_the_own_page_is_welcome():
    assert GUARD.refusal(OWN, "right-token", needs_origin=True) is None
    assert GUARD.refusal({"host": "localhost:8765"}, "right-token", needs_origin=False) is None


@pytest.mark.parametrize(
    ("headers", "token", "word"),
    [
        (OWN | {"host": "evil.example:8765"}, "right-token", "own address"),
        (OWN | {"host": "127.0.0.1:80"}, "right-token", "own address"),
        ({}, "right-token", "own address"),
        (OWN | {"origin": "http://evil.example"}, "right-token", "another site"),
        (OWN | {"origin": "null"}, "right-token", "another site"),
        (OWN | {"origin": "https://127.0.0.1:8765"}, "right-token", "another site"),
        ({"host": "127.0.0.1:8765"}, "right-token", "without an origin"),
        (OWN, "wrong-token", "token"),
        (OWN, "", "token"),
        (OWN, "right-tokén", "token"),
    ],
)
def test_everybody_else_is_refused(headers, token, word):
    assert word in GUARD.refusal(headers, token, needs_origin=True)
