"""The connection to one page over its socket: its requests, and the messages that workers send back."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from understudy.lab.pool import Pool
from understudy.lab.question import BadQuestionError, Question, read_question

FRAME_SECONDS = 1 / 30
"""Messages to a page are gathered and sent at most this often."""

LARGEST_MESSAGE = 256 * 1024
MOST_SEEDS = 200
REMEMBERED = 64
"""Number of ends that are remembered for a page, so that a split or a push continues from there."""

WEIGHTS = ("incoming", "outgoing", "bias", "offset")


class Conversation:
    """One page: its requests, and the messages that go back to it."""

    def __init__(self, websocket: Any, pool: Pool, owner: int):
        self.websocket, self.pool, self.owner = websocket, pool, owner
        self.outbox: list[dict[str, Any]] = []
        self.filled = asyncio.Event()
        self.numbers: dict[int, int] = {}
        self.ends: dict[str, dict[str, Any]] = {}

    async def hold(self) -> None:
        """Answer until the page is closed; then stop what it has asked for."""
        sender = asyncio.create_task(self._send())
        try:
            while True:
                message = await self.websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                self._hear(message.get("text"))
        finally:
            sender.cancel()
            self.pool.cancel(self.owner)

    def _hear(self, text: str | None) -> None:
        try:
            if text is None or len(text) > LARGEST_MESSAGE:
                raise BadQuestionError(f"A message is a JSON text of at most {LARGEST_MESSAGE // 1024} kB.")
            message = parse(text.encode("utf-8", "surrogatepass"))
            if not isinstance(message, dict) or not isinstance(message.get("id"), int):
                raise BadQuestionError("A message is a JSON object with a whole number as its id.")
            self._obey(message)
        except BadQuestionError as error:
            self._post({"type": "error", "id": None, "message": str(error)})

    def _obey(self, message: dict[str, Any]) -> None:
        number, do = message["id"], message.get("do")
        if do == "cancel":
            if number in self.numbers:
                self.pool.cancel(self.owner, self.numbers[number])
            return
        if do not in ("run", "seeds"):
            raise BadQuestionError(f"A page can ask to run, to try seeds or to cancel; received {do!r:.40}.")
        try:
            question = read_question(message.get("question"))
        except BadQuestionError as error:
            self._post({"type": "error", "id": number, "message": str(error)})
            return
        request: dict[str, Any] = {"do": do, "question": question.as_json()}
        if do == "seeds":
            count = message.get("count")
            if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_SEEDS:
                raise BadQuestionError(f"Up to {MOST_SEEDS} seeds are tried at once; received {count!r:.40}.")
            request["seeds"] = list(range(count))
        else:
            request["known"] = self._known(question)
        state = {"busy": self.pool.busy, "workers": self.pool.size, "ready": self.pool.ready}
        self._post({"type": "queued", "id": number, **state})

        def deliver(answer: dict[str, Any]) -> None:
            if answer["type"] == "end":
                self._remember(question, answer)
            self._post({"id": number, **answer})

        self.numbers[number] = self.pool.submit(self.owner, request, deliver)

    def _remember(self, question: Question, end: dict[str, Any]) -> None:
        self.ends[_key(question, end["part"])] = {name: end[name] for name in ("part", *WEIGHTS)}
        while len(self.ends) > REMEMBERED:
            del self.ends[next(iter(self.ends))]

    def _known(self, question: Question) -> dict[str, Any] | None:
        """The latest end of an earlier part of this question that this page has seen."""
        keys = [_key(question, part) for part in reversed(range(len(question.then)))]
        return next((self.ends[key] for key in keys if key in self.ends), None)

    def _post(self, message: dict[str, Any]) -> None:
        last = self.outbox[-1] if self.outbox else None
        if last and message["type"] == last["type"] == "frames" and message["id"] == last["id"]:
            last["frames"] = last["frames"] + message["frames"]
        else:
            self.outbox.append(message)
        self.filled.set()

    async def _send(self) -> None:
        with suppress(RuntimeError):  # the page has gone
            while True:
                await self.filled.wait()
                self.filled.clear()
                messages, self.outbox = self.outbox, []
                await self.websocket.send_text(json.dumps(messages, allow_nan=False))
                await asyncio.sleep(FRAME_SECONDS)


def _key(question: Question, part: int) -> str:
    """The question as it was when this part was the last, as text."""
    return json.dumps({**question.as_json(), "then": question.as_json()["then"][:part]}, sort_keys=True)


def parse(content: bytes) -> Any:
    """JSON, or `BadQuestionError`."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise BadQuestionError("This is not JSON.") from None
