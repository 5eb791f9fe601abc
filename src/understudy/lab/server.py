"""The server: the page, one socket per page, uploads and downloads. It listens on 127.0.0.1 only."""

import asyncio
import io
import itertools
import secrets
import socket as sockets
import webbrowser
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from understudy.lab import teacher_files
from understudy.lab.address import fragment_of
from understudy.lab.conversation import LARGEST_MESSAGE, WEIGHTS, Conversation, parse
from understudy.lab.export import as_command, as_python, name_of
from understudy.lab.gallery import listing
from understudy.lab.guard import Guard, headers
from understudy.lab.pool import Pool
from understudy.lab.question import BadQuestionError, Question, read_question

PAGE = Path(__file__).parent / "page"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css"}
LARGEST_UPLOAD = 4 * 1024 * 1024

Handler = Callable[[Any], Awaitable[Any]]


def make_app(port: int, token: str, pool: Pool, opened: list[dict[str, Any]], framed: bool) -> Any:
    """The ASGI application; `opened` are stored runs for the page to show; `framed`: inside another page."""
    from starlette.applications import Starlette
    from starlette.routing import Route, WebSocketRoute

    site = _Site(Guard(port, token), pool, opened, headers(framed))

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
    """The answers to each kind of request that the guard has allowed."""

    def __init__(self, guard: Guard, pool: Pool, opened: list[dict[str, Any]], headers: dict[str, str]):
        self.guard, self.pool, self.opened, self.headers = guard, pool, opened, headers
        self.owners = itertools.count()

    def guarded(self, handler: Handler, *, needs_origin: bool = False) -> Handler:
        """The handler behind the guard. A bad question becomes an answer that says what is wrong."""
        from starlette.responses import JSONResponse, PlainTextResponse

        async def checked(request: Any) -> Any:
            told = request.path_params.get("token", "")
            if reason := self.guard.refusal(request.headers, told, needs_origin=needs_origin):
                return PlainTextResponse(reason + "\n", status_code=403, headers=self.headers)
            try:
                return await handler(request)
            except BadQuestionError as error:
                return JSONResponse({"message": str(error)}, status_code=400, headers=self.headers)

        return checked

    async def page(self, request: Any) -> Any:
        """A file of the page."""
        from starlette.responses import PlainTextResponse, Response

        path = PAGE / request.path_params.get("name", "index.html")
        if path.parent != PAGE or path.suffix not in TYPES or not path.is_file():
            return PlainTextResponse("There is nothing of this name.\n", status_code=404, headers=self.headers)
        return Response(path.read_bytes(), media_type=TYPES[path.suffix], headers=self.headers)

    async def gallery(self, _: Any) -> Any:
        """The gallery, and stored runs."""
        from starlette.responses import JSONResponse

        return JSONResponse({"gallery": listing(), "opened": self.opened}, headers=self.headers)

    async def teacher(self, request: Any) -> Any:
        """A teacher from an uploaded file."""
        from starlette.responses import JSONResponse

        content = await _body(request, LARGEST_UPLOAD)
        return JSONResponse(teacher_files.read(request.query_params.get("name", ""), content), headers=self.headers)

    async def code(self, request: Any) -> Any:
        """Python and shell command of a question."""
        from starlette.responses import JSONResponse

        question = read_question(parse(await _body(request, LARGEST_MESSAGE)))
        told = {"python": as_python(question), "command": as_command(question), "name": name_of(question)}
        return JSONResponse(told, headers=self.headers)

    async def weights(self, request: Any) -> Any:
        """Named arrays as an .npz archive."""
        import numpy as np

        content = parse(await _body(request, LARGEST_UPLOAD))
        try:
            arrays = {name: np.asarray(content[name], float) for name in WEIGHTS if content.get(name) is not None}
        except (AttributeError, TypeError, ValueError):
            raise BadQuestionError(f"Weights are arrays of numbers by name: {', '.join(WEIGHTS)}.") from None
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        return self._download(buffer.getvalue())

    async def result(self, request: Any) -> Any:
        """The run of a question as `us.fit` stores it, computed by a worker."""
        question = read_question(parse(await _body(request, LARGEST_MESSAGE)))
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
        return self._download(message["content"])

    def _download(self, content: bytes) -> Any:
        from starlette.responses import Response

        return Response(content, media_type="application/octet-stream", headers=self.headers)

    async def socket(self, websocket: Any) -> None:
        """The conversation with one page."""
        told = websocket.path_params.get("token", "")
        if reason := self.guard.refusal(websocket.headers, told, needs_origin=True):
            await websocket.close(code=4403, reason=reason[:100])
            return
        await websocket.accept()
        await Conversation(websocket, self.pool, next(self.owners)).hold()


async def _body(request: Any, most: int) -> bytes:
    """The body of a request, refused when it is too large, before all of it has arrived."""
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > most:
            raise BadQuestionError(f"At most {most // 1024} kB are read; received more.")
    return bytes(content)


class Lab:
    """A server at `address` that does not answer requests yet. Its first worker is already loading the engine.

    **Arguments**

    - `question`: what the page shows first; the default case of `fit` unless given.
    - `port`: 0 takes a free one. `token`: part of the address; random unless given.
    - `opened`: stored runs to show as dots and to list next to the gallery.
    - `framed`: whether pages of this machine may show the lab inside themselves.
    """

    def __init__(
        self,
        question: Question | None = None,
        *,
        port: int = 0,
        token: str | None = None,
        opened: list[dict[str, Any]] | None = None,
        framed: bool = False,
    ):
        self._listener = sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM)
        self._listener.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen(64)  # so that the page can be opened as soon as its address is known
        port, token = self._listener.getsockname()[1], token or secrets.token_urlsafe(16)
        self.address = f"http://127.0.0.1:{port}/{token}/" + (f"#{fragment_of(question)}" if question else "")
        pool = Pool({"do": "run", "question": (question or Question()).as_json()})  # starts while uvicorn is imported
        import uvicorn

        app = make_app(port, token, pool, opened or [], framed)
        settings = uvicorn.Config(app, log_level="error", ws_max_size=LARGEST_MESSAGE, lifespan="on", access_log=False)
        self._server = uvicorn.Server(settings)

    def run(self) -> None:
        """Answer until interrupted or closed."""
        self._server.run(sockets=[self._listener])

    def close(self) -> None:
        """End the server and its workers."""
        self._server.should_exit = True


def serve(
    question: Question | None = None,
    *,
    port: int = 0,
    token: str | None = None,
    browser: bool = True,
    say: Callable[[str], None] = print,
    opened: list[dict[str, Any]] | None = None,
) -> None:
    """Serve the lab until it is interrupted; see `Lab`. `say` is called with the address; `browser`: also open it."""
    lab = Lab(question, port=port, token=token, opened=opened)
    say(lab.address)
    if browser:
        webbrowser.open(lab.address)
    lab.run()
