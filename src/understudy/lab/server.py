"""The server: the page, one socket per page, uploads and downloads. It listens on 127.0.0.1 only."""

import asyncio
import io
import itertools
import json
import secrets
import webbrowser
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from understudy.lab import teacher_files
from understudy.lab.address import fragment_of
from understudy.lab.export import as_command, as_python, name_of
from understudy.lab.gallery import listing
from understudy.lab.guard import HEADERS, Guard
from understudy.lab.pool import Pool
from understudy.lab.question import BadQuestionError, Question, read_question

PAGE = Path(__file__).parent / "page"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css"}
FRAME_SECONDS = 1 / 30
"""Messages to a page are gathered and sent at most this often."""

LARGEST_MESSAGE, LARGEST_UPLOAD = 256 * 1024, 4 * 1024 * 1024
MOST_SEEDS = 200

Handler = Callable[[Any], Awaitable[Any]]


def make_app(port: int, token: str, pool: Pool, opened: list[dict[str, Any]] | None = None) -> Any:
    """The ASGI application; `opened` are stored runs for the page to show."""
    from starlette.applications import Starlette
    from starlette.routing import Route, WebSocketRoute

    site = _Site(Guard(port, token), pool, opened or [])

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        await pool.start()
        yield
        await pool.stop()

    def posted(name: str, handler: Handler) -> Route:
        return Route(f"/{{token}}/{name}", site.guarded(handler, needs_origin=True), methods=["POST"])

    return Starlette(
        routes=[
            WebSocketRoute("/{token}/socket", site.socket),
            Route("/{token}/", site.guarded(site.page)),
            Route("/{token}/gallery.json", site.guarded(site.gallery)),
            posted("teacher", site.teacher),
            posted("code", site.code),
            posted("weights.npz", site.weights),
            posted("result.nc", site.result),
            Route("/{token}/{name}", site.guarded(site.page)),
            Route("/{rest:path}", site.guarded(site.page)),
        ],
        lifespan=lifespan,
    )


class _Site:
    """What is answered to each kind of request, after the guard has let it pass."""

    def __init__(self, guard: Guard, pool: Pool, opened: list[dict[str, Any]]):
        self.guard, self.pool, self.opened = guard, pool, opened
        self.owners = itertools.count()

    def guarded(self, handler: Handler, *, needs_origin: bool = False) -> Handler:
        """The handler behind the guard; a bad question becomes an answer with a sentence."""
        from starlette.responses import JSONResponse, PlainTextResponse

        async def checked(request: Any) -> Any:
            told = request.path_params.get("token", "")
            if reason := self.guard.refusal(request.headers, told, needs_origin=needs_origin):
                return PlainTextResponse(reason + "\n", status_code=403, headers=HEADERS)
            try:
                return await handler(request)
            except BadQuestionError as error:
                return JSONResponse({"message": str(error)}, status_code=400, headers=HEADERS)

        return checked

    async def page(self, request: Any) -> Any:
        """A file of the page."""
        from starlette.responses import PlainTextResponse, Response

        path = PAGE / request.path_params.get("name", "index.html")
        if path.parent != PAGE or path.suffix not in TYPES or not path.is_file():
            return PlainTextResponse("There is nothing of this name.\n", status_code=404, headers=HEADERS)
        return Response(path.read_bytes(), media_type=TYPES[path.suffix], headers=HEADERS)

    async def gallery(self, _: Any) -> Any:
        """The gallery, and stored runs."""
        from starlette.responses import JSONResponse

        return JSONResponse({"gallery": listing(), "opened": self.opened}, headers=HEADERS)

    async def teacher(self, request: Any) -> Any:
        """A teacher from an uploaded file."""
        from starlette.responses import JSONResponse

        content = await _body(request, LARGEST_UPLOAD)
        return JSONResponse(teacher_files.read(request.query_params.get("name", ""), content), headers=HEADERS)

    async def code(self, request: Any) -> Any:
        """Python and shell command of a question."""
        from starlette.responses import JSONResponse

        question = read_question(_json(await _body(request, LARGEST_MESSAGE)))
        told = {"python": as_python(question), "command": as_command(question), "name": name_of(question)}
        return JSONResponse(told, headers=HEADERS)

    async def weights(self, request: Any) -> Any:
        """Named arrays as an .npz archive."""
        import numpy as np

        content = _json(await _body(request, LARGEST_UPLOAD))
        try:
            arrays = {str(name): np.asarray(value, float) for name, value in dict(content).items()}
        except (TypeError, ValueError):
            raise BadQuestionError("Weights are named arrays of numbers.") from None
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        return _download(buffer.getvalue())

    async def result(self, request: Any) -> Any:
        """The run of a question as `us.fit` stores it, computed by a worker."""
        question = read_question(_json(await _body(request, LARGEST_MESSAGE)))
        if question.then:
            raise BadQuestionError("A stored result is one run from its start; this one was split or pushed.")
        loop, owner = asyncio.get_running_loop(), next(self.owners)
        answer: asyncio.Future[dict[str, Any]] = loop.create_future()

        def deliver(message: dict[str, Any]) -> None:
            if message["type"] in ("stored", "error", "cancelled") and not answer.done():
                answer.set_result(message)

        self.pool.submit(owner, {"do": "store", "question": question.as_json()}, deliver)
        try:
            message = await answer
        finally:
            self.pool.cancel(owner)
        if message["type"] != "stored":
            raise BadQuestionError(message.get("message", "The run was stopped."))
        return _download(message["content"])

    async def socket(self, websocket: Any) -> None:
        """The conversation with one page."""
        told = websocket.path_params.get("token", "")
        if reason := self.guard.refusal(websocket.headers, told, needs_origin=True):
            await websocket.close(code=4403, reason=reason[:100])
            return
        await websocket.accept()
        await _Conversation(websocket, self.pool, next(self.owners)).hold()


def _download(content: bytes) -> Any:
    from starlette.responses import Response

    return Response(content, media_type="application/octet-stream", headers=HEADERS)


async def _body(request: Any, most: int) -> bytes:
    """The body of a request, refused when it is too large, before all of it has arrived."""
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > most:
            raise BadQuestionError(f"At most {most // 1024} kB are read; received more.")
    return bytes(content)


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise BadQuestionError("This is not JSON.") from None


class _Conversation:
    """One page: its requests, and the messages that go back to it."""

    def __init__(self, websocket: Any, pool: Pool, owner: int):
        self.websocket, self.pool, self.owner = websocket, pool, owner
        self.outbox: list[dict[str, Any]] = []
        self.filled = asyncio.Event()
        self.numbers: dict[int, int] = {}

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
            message = _json(text.encode("utf-8", "surrogatepass"))
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
        self._post({"type": "queued", "id": number, "busy": self.pool.busy, "workers": self.pool.size})

        def deliver(answer: dict[str, Any]) -> None:
            self._post({"id": number, **answer})

        self.numbers[number] = self.pool.submit(self.owner, request, deliver)

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


def serve(
    question: Question | None = None,
    *,
    port: int = 0,
    token: str | None = None,
    browser: bool = True,
    say: Callable[[str], None] = print,
    opened: list[dict[str, Any]] | None = None,
) -> None:
    """Serve the lab until it is interrupted.

    **Arguments**

    - `question`: what the page shows first; the default case of `fit` unless given.
    - `port`: 0 takes a free one. `token`: part of the address; random unless given.
    - `browser`: whether to open the page. `say`: called with the address.
    - `opened`: stored runs to list beside the gallery.
    """
    import socket as sockets

    import uvicorn

    listener = sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM)
    listener.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)  # so that the page can be opened as soon as its address is printed
    port, token = listener.getsockname()[1], token or secrets.token_urlsafe(16)
    fragment = "#" + fragment_of(question) if question is not None else ""
    address = f"http://127.0.0.1:{port}/{token}/{fragment}"
    app = make_app(port, token, Pool(), opened)
    settings = uvicorn.Config(app, log_level="error", ws_max_size=LARGEST_MESSAGE, lifespan="on", access_log=False)
    say(address)
    if browser:
        webbrowser.open(address)
    uvicorn.Server(settings).run(sockets=[listener])
