"""Which requests the server answers: only those of a browser on this machine that knows the token.

A page of another site that the same browser has open can send requests to 127.0.0.1. It does not know the token,
and its `Origin` reveals it. A rebinding name server can make a foreign name point here, which the `Host` reveals.
"""

import hmac
from collections.abc import Mapping


class Guard:
    """Checks `Host`, `Origin` and the token of every request."""

    def __init__(self, port: int, token: str):
        self.token = token
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    def refusal(self, headers: Mapping[str, str], token: str, *, needs_origin: bool) -> str | None:
        """The reason for refusing a request, or None. Browsers always send `Origin` for sockets and POST."""
        if headers.get("host", "") not in self._hosts:
            return "This server answers only to its own address."
        origin = headers.get("origin")
        if origin is None and needs_origin:
            return "A request without an origin is refused."
        if origin is not None and origin not in {f"http://{host}" for host in self._hosts}:
            return "A request from another site is refused."
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return "The token in the address is wrong. Use the address that `understudy lab` has printed."
        return None


def headers(framed: bool) -> dict[str, str]:
    """Headers of every answer: load nothing from elsewhere, do not pass on the address, keep no copy.

    If the page is `framed`, pages of this machine, such as notebooks, may show it inside themselves.
    """
    ancestors = "http://127.0.0.1:* http://localhost:*" if framed else "'none'"
    return {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
        "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        f"frame-ancestors {ancestors}",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
