"""The state of the page in its address: a question as the fragment of a link, and back."""

import base64
import binascii
import json
from urllib.parse import urlsplit

from understudy.lab.question import BadQuestionError, Question, read_question

LONGEST = 200_000
"""The largest number of characters of a fragment. Longer ones are refused."""


def fragment_of(question: Question) -> str:
    """The question as text for the part of an address after `#`.

    >>> question_of(fragment_of(Question(students=2))).students
    2
    """
    text = json.dumps(question.as_json(), separators=(",", ":"), sort_keys=True)
    return "q=" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def question_of(link: str) -> Question:
    """The question in a link of the lab (whatever its host and token), or in its fragment alone."""
    fragment = urlsplit(link).fragment or link.rpartition("#")[2]
    if not fragment.startswith("q=") or len(fragment) > LONGEST:
        raise BadQuestionError(f"A link of the lab ends in #q=…; received {link!r:.100}.")
    text = fragment[2:]
    try:
        content = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise BadQuestionError(f"The link is damaged: its last part cannot be read; received {text!r:.60}.") from None
    return read_question(content)
