"""Add security headers to each answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tornado.httputil import HTTPHeaders
from tornado.web import OutputTransform


def policy(frames: Iterable[str]) -> str:
    """Return the content security policy of the dashboard.

    In addition to the server's own files, Bokeh and Panel need scripts in the page ('unsafe-inline'), functions created
    from the text of a CustomJS ('unsafe-eval'), modules of es-module-shims (blob:), styles in the page, and images
    drawn by the page (data:, blob:).
    """
    parts = {
        "default-src": "'self'",
        "script-src": "'self' 'unsafe-inline' 'unsafe-eval' blob:",
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self' data: blob:",
        "worker-src": "'self' blob:",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": " ".join(["'self'", *frames]),
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())


def guarding(frames: Iterable[str]) -> type[OutputTransform]:
    """Return a transform that adds the headers to all answers."""
    added = {
        "Content-Security-Policy": policy(frames),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }

    class Guarding(OutputTransform):
        def __init__(self, request: Any) -> None:
            self._request = request

        def transform_first_chunk(
            self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
        ) -> tuple[int, HTTPHeaders, bytes]:
            for name, value in added.items():
                headers[name] = value
            if cookie := getattr(self._request, "answer_cookie", None):
                headers.add("Set-Cookie", cookie)
            return status_code, headers, chunk

    return Guarding
