"""What a page may ask: everything is checked, and a question survives the way into an address and back."""

import json
import math

import pytest

from understudy.lab.address import fragment_of, question_of
from understudy.lab.gallery import GALLERY, listing
from understudy.lab.question import BadQuestionError, Question, read_question

BAD = [
    ("text", "JSON object"),
    ({"students": 0}, "students"),
    ({"students": True}, "students"),
    ({"students": 2.0}, "students"),
    ({"students": 10**9}, "students"),
    ({"teacher": {"kind": "cone"}}, "kind"),
    ({"teacher": {"kind": "orthonormal", "count": 4, "dim": 3}}, "dimensions"),
    ({"teacher": {"kind": "angles", "angles": []}}, "angles"),
    ({"teacher": {"kind": "angles", "angles": [math.nan]}}, "finite"),
    ({"teacher": {"kind": "vectors", "incoming": [[1.0], [1.0, 2.0]]}}, "length"),
    ({"teacher": {"kind": "vectors", "incoming": [[1.0]], "outgoing": [1.0, 1.0]}}, "outgoing"),
    ({"start": {"kind": "gaussian", "std": -1.0}}, "std"),
    ({"start": {"kind": "vectors", "incoming": [[1.0, 2.0]]}}, "start"),
    ({"tolerance": 1.0}, "tolerance"),
    ({"activation": ""}, "activation"),
    ({"then": [{"jump": 1}]}, "step"),
    ({"then": [{"split": 0, "share": 0.5}] * 40}, "at most"),
    ({"teacher": {"kind": "orthonormal", "count": 64, "dim": 100}, "students": 32}, "parameters"),
    ({"surprise": 1}, "surprise"),
]


@pytest.mark.parametrize(("given", "word"), BAD)
def test_a_bad_question_is_refused_with_a_sentence(given, word):
    with pytest.raises(BadQuestionError, match=word):
        read_question(given)


def test_a_question_survives_its_address_to_the_last_digit():
    start = {"kind": "vectors", "incoming": [[0.1 + 1e-16, 1 / 3]], "outgoing": [math.pi]}
    asked = read_question({"students": 1, "teacher": {"kind": "angles", "angles": [0.1, 2 / 3]}, "start": start})
    assert question_of("http://127.0.0.1:1/token/#" + fragment_of(asked)) == asked
    assert read_question(json.loads(json.dumps(asked.as_json()))) == asked


@pytest.mark.parametrize("link", ["", "http://x/", "#q=%%%", "#q=bm90IGpzb24", "#q=" + "A" * 300_000])
def test_a_damaged_link_is_told(link):
    with pytest.raises(BadQuestionError, match="link"):
        question_of(link)


def test_the_default_question_is_the_default_of_fit():
    assert Question() == read_question({})


def test_every_entry_of_the_gallery_is_a_question():
    assert len(listing()) == len(GALLERY) >= 8
    for entry in listing():
        assert question_of("#" + entry["fragment"]).students >= 1
