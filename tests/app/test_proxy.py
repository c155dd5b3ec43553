"""Behind a proxy: one that keeps the path, one that takes a part of it away as JupyterHub's does, and a Unix socket."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urljoin

import panel as pn
import pytest
from servers import serving, token_of
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application as Site
from tornado.web import RequestHandler
from tornado.websocket import WebSocketHandler, websocket_connect

from bnnviz_app.access.gate import Gate
from bnnviz_app.access.secret import Secret

TOKEN = "a-token-of-this-test"
NAME = "hub.example.org"
BASE = "/user/ada/proxy/5006"
BROWSER = {"Accept": "text/html", "Host": NAME}


def proxy(port: int, strips: bool) -> type[RequestHandler]:
    """Return what passes requests and sockets on, with the Host and Origin of the browser, as jupyter-server-proxy."""

    class Proxy(WebSocketHandler):
        async def get(self, *args: Any, **kwargs: Any) -> None:
            if self.request.headers.get("Upgrade", "").lower() == "websocket":
                await super().get(*args, **kwargs)
            else:
                await self.post()

        async def post(self) -> None:
            method, body = self.request.method, self.request.body or None
            request = HTTPRequest(self._there("http"), method, self.request.headers, body, follow_redirects=False)
            answer = await AsyncHTTPClient(force_instance=True).fetch(request, raise_error=False)
            self.set_status(answer.code)
            for name, value in answer.headers.get_all():
                if name not in ("Content-Length", "Transfer-Encoding"):
                    self.add_header(name, value)
            self.finish(answer.body)

        def check_origin(self, origin: str) -> bool:
            return True  # the server behind it is asked

        def select_subprotocol(self, subprotocols: list[str]) -> str:
            self._offered = subprotocols
            return subprotocols[0]

        async def open(self) -> None:
            kept = ("Host", "Origin", "Cookie")
            headers = {name: self.request.headers[name] for name in kept if name in self.request.headers}
            request = HTTPRequest(self._there("ws"), headers=headers)
            try:
                line = await websocket_connect(request, subprotocols=self._offered)
            except HTTPClientError:
                self.close(4003)
                return
            await self.write_message(await line.read_message())

        def _there(self, scheme: str) -> str:
            return f"{scheme}://127.0.0.1:{port}{self.request.uri.removeprefix(BASE if strips else '')}"

    return Proxy


class Browser:
    def __init__(self, port: int, token: str) -> None:
        self.base, self._token = f"http://127.0.0.1:{port}", token

    async def get(self, path: str, headers: dict[str, str] | None = None, **how: Any) -> HTTPResponse:
        request = HTTPRequest(self.base + path, headers=BROWSER | (headers or {}), follow_redirects=False, **how)
        return await AsyncHTTPClient(force_instance=True).fetch(request, raise_error=False)

    async def hears(self, path: str, cookie: dict[str, str], origin: str) -> bool:
        """Tell whether a page of an origin gets a first message through a socket."""
        headers = {"Host": NAME, "Origin": origin, **cookie}
        request = HTTPRequest(self.base.replace("http", "ws") + path, headers=headers)
        line = await websocket_connect(request, subprotocols=["bokeh", self._token])
        return await asyncio.wait_for(line.read_message(), 20) is not None


@asynccontextmanager
async def behind(prefix: str, strips: bool) -> AsyncIterator[Browser]:
    def gate(port: int) -> Gate:
        return Gate.at("127.0.0.1", port, Secret(TOKEN), [NAME])

    async with serving(lambda doc: pn.Row("text").server_doc(doc), gate, prefix=prefix) as served:
        sockets = bind_sockets(0, "127.0.0.1")
        front = HTTPServer(Site([(".*", proxy(served.port, strips))]))
        front.add_sockets(sockets)
        try:
            yield Browser(sockets[0].getsockname()[1], token_of(served))
        finally:
            front.stop()


@pytest.mark.parametrize("strips", [True, False], ids=["as JupyterHub", "with --prefix"])
async def test_a_page_behind_a_proxy_is_whole(strips: bool) -> None:
    async with behind("" if strips else BASE, strips) as browser:
        page = f"{BASE}/app"
        # Without a token to the login, and from there back, all under the proxy's path.
        asked = await browser.get(f"{page}?page=race&seed=3")
        assert asked.code == 302
        login = urljoin(f"{page}?page=race", asked.headers["Location"])
        assert login.startswith(f"{BASE}/login?")
        form = await browser.get(login)
        assert form.code == 200
        (action,) = re.findall(r'action="([^"]+)"', form.body.decode())
        (requested,) = re.findall(r'name="next" value="([^"]+)"', form.body.decode())
        sent = {"method": "POST", "body": f"word={TOKEN}&next={requested}"}
        let_in = await browser.get(urljoin(login, action), {"Origin": f"https://{NAME}"}, **sent)
        assert let_in.code == 302
        assert urljoin(login, let_in.headers["Location"]) == f"{BASE}/app?page=race"
        with_token = await browser.get(f"{page}?token={TOKEN}&seed=3")
        assert urljoin(page, with_token.headers["Location"]) == f"{page}?seed=3"
        cookie = {"Cookie": with_token.headers["Set-Cookie"].partition(";")[0]}
        answer = await browser.get(page, cookie)
        assert answer.code == 200
        parts = re.findall(r'(?:src|href)="([^"]+)"', answer.body.decode())
        assert len(parts) >= 4
        for part in parts:
            assert (await browser.get(urljoin(page, part), cookie)).code == 200, part
        assert await browser.hears(f"{page}/ws", cookie, f"https://{NAME}")
        assert not await browser.hears(f"{page}/ws", cookie, "https://evil.example")
        assert not await browser.hears(f"{page}/ws", {}, f"https://{NAME}")
