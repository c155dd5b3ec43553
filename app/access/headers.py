"""Add to each answer the headers by which a browser guards the page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bokeh.settings import settings
from tornado.httputil import HTTPHeaders
from tornado.web import OutputTransform


def policy(frames: Iterable[str], elsewhere: bool = False) -> str:
    """Return the content security policy of the dashboard.

    What Bokeh and Panel need beyond the server's own files: scripts in the page ('unsafe-inline'), functions made
    of the text of a CustomJS ('unsafe-eval'), modules that es-module-shims makes (blob:), styles in the page, and
    pictures that are drawn by the page (data:, blob:).
    """
    web = " https:" if elsewhere else ""
    parts = {
        "default-src": f"'self'{web}",
        "script-src": f"'self' 'unsafe-inline' 'unsafe-eval' blob:{web}",
        "style-src": f"'self' 'unsafe-inline'{web}",
        "img-src": f"'self' data: blob:{web}",
        "font-src": f"'self' data:{web}",
        "connect-src": f"'self' data: blob:{web}",
        "worker-src": "'self' blob:",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": " ".join(["'self'", *frames]),
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())


def guarding(frames: Iterable[str]) -> type[OutputTransform]:
    """Return what adds the headers to the answers of an application."""
    added = {
        "Content-Security-Policy": policy(frames, settings.resources(default="server") != "server"),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }

    class Guarding(OutputTransform):
        def __init__(self, request: Any) -> None:
            pass

        def transform_first_chunk(
            self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
        ) -> tuple[int, HTTPHeaders, bytes]:
            for name, value in added.items():
                headers[name] = value
            return status_code, headers, chunk

    return Guarding
