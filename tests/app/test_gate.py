"""Who is let into the dashboard: the token, the hosts, the origins, and what each answer tells a browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from servers import BROWSER, serving
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse
from tornado.websocket import websocket_connect

from bnnviz.errors import BnnvizError
from bnnviz_app.access import attempts
from bnnviz_app.access.gate import Gate
from bnnviz_app.access.secret import Password, Secret

TOKEN = "a-token-of-this-test"


class Visitor:
    """Ask a server as a browser or a program would."""

    def __init__(self, port: int) -> None:
        self.port, self.base = port, f"http://127.0.0.1:{port}"

    async def get(self, path: str, headers: dict[str, str] | None = None, **how: Any) -> HTTPResponse:
        request = HTTPRequest(
            self.base + path, headers=headers or {}, follow_redirects=False, request_timeout=20, **how
        )
        return await AsyncHTTPClient(force_instance=True).fetch(request, raise_error=False)

    async def post(self, path: str, headers: dict[str, str] | None = None, **fields: str) -> HTTPResponse:
        return await self.get(path, headers, method="POST", body=urlencode(fields))

    async def shakes_hands(self, **headers: str) -> bool:
        """Tell whether a socket is opened."""
        request = HTTPRequest(f"ws://127.0.0.1:{self.port}/app/ws", headers=headers, request_timeout=10)
        try:
            line = await websocket_connect(request, subprotocols=["bokeh", "token"])
        except HTTPClientError as error:
            assert error.code == 403
            return False
        line.close()
        return True


@asynccontextmanager
async def visiting(gate: Callable[[int], Gate]) -> AsyncIterator[Visitor]:
    async with serving(lambda doc: None, gate) as server:
        yield Visitor(server.port)


def with_token(port: int) -> Gate:
    return Gate.at("127.0.0.1", port, Secret(TOKEN))


def open_to_all(port: int) -> Gate:
    return Gate.at("127.0.0.1", port, None)


def cookie(response: HTTPResponse) -> dict[str, str]:
    """Return the headers of a browser that keeps what it was given."""
    return {"Cookie": response.headers["Set-Cookie"].partition(";")[0]}


# --- the token


async def test_nothing_is_answered_without_the_token() -> None:
    async with visiting(with_token) as visitor:
        paths = ("/app", "/", "/app/metadata", "/app/autoload.js?bokeh-autoload-element=a", "/static/js/bokeh.min.js")
        for path in (*paths, "/static/extensions/panel/panel.min.js", "/favicon.ico", "/nowhere"):
            assert (await visitor.get(path)).code == 403, path
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
            answer = await visitor.get("/app", method=method, allow_nonstandard_methods=True, body=b"")
            assert answer.code == 403
        assert not await visitor.shakes_hands()
        assert not await visitor.shakes_hands(Origin=visitor.base)
        for wrong in (
            {"Accept": "*/*"},
            {"Authorization": "Bearer wrong"},
            {"Cookie": f"bnnviz-access-{visitor.port}=wrong"},
        ):
            assert (await visitor.get("/static/js/bokeh.min.js", wrong)).code == 403
        assert (await visitor.get("/app", {"Cookie": f"bnnviz-access-{visitor.port}={TOKEN}"})).code == 403


async def test_the_token_of_the_address_becomes_a_cookie_and_the_rest_stays() -> None:
    async with visiting(with_token) as visitor:
        answer = await visitor.get(f"/app?page=race&token={TOKEN}&entries=bps&entries=hmc%3Astep_size%3D0.1", BROWSER)
        assert answer.code == 302
        assert answer.headers["Location"] == "./app?page=race&entries=bps&entries=hmc%3Astep_size%3D0.1"
        kept = answer.headers["Set-Cookie"]
        assert TOKEN not in kept
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in kept.split(";")}
        assert kept.startswith(f"bnnviz-access-{visitor.port}=")
        browser = cookie(answer)
        assert (await visitor.get("/app", browser)).code == 200
        assert (await visitor.get("/static/js/bokeh.min.js", browser)).code == 200
        assert await visitor.shakes_hands(Origin=visitor.base, **browser)
        assert (await visitor.get("/app", {"Authorization": f"Bearer {TOKEN}"})).code == 200


@pytest.mark.parametrize("path", [f"//evil.example/?token={TOKEN}", f"/%5Cevil.example?token={TOKEN}&a=%0d%0aX:1"])
async def test_the_token_sends_nobody_elsewhere(path: str) -> None:
    async with visiting(with_token) as visitor:
        answer = await visitor.get(path, BROWSER)
        assert answer.code in (302, 403)
        assert not urlsplit(answer.headers.get("Location", "/")).netloc
        assert "X" not in answer.headers


async def test_a_browser_without_it_is_asked_and_comes_to_the_same_page() -> None:
    async with visiting(with_token) as visitor:
        asked = await visitor.get("/app?page=race&seed=3", BROWSER)
        assert asked.code == 302
        to_login = urlsplit(asked.headers["Location"])
        assert (to_login.path, parse_qs(to_login.query)) == ("./login", {"next": ["/app?page=race&seed=3"]})
        form = await visitor.get(asked.headers["Location"].removeprefix("."), BROWSER)
        assert form.code == 200
        assert 'value="/app?page=race&amp;seed=3"' in form.body.decode()
        assert "Set-Cookie" not in form.headers
        wrong = await visitor.post("/login", word="wrong", next="/app")
        assert wrong.code == 403 and "Set-Cookie" not in wrong.headers
        right = await visitor.post("/login", word=TOKEN, next="/app?page=race&seed=3")
        assert (right.code, right.headers["Location"]) == (302, "./app?page=race&seed=3")
        assert (await visitor.get("/app?page=race", cookie(right))).code == 200
        for elsewhere in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "a\nb"):
            led = await visitor.post("/login", word=TOKEN, next=elsewhere)
            assert led.headers["Location"] == "./"
        assert (await visitor.post("/login", {"Origin": "http://evil.example"}, word=TOKEN)).code == 403
        marked = await visitor.get("/login?" + urlencode({"next": '/"><script>alert(1)</script>'}), BROWSER)
        assert b"<script>" not in marked.body


async def test_a_link_on_another_site_keeps_who_was_let_in() -> None:
    """The browser sends no strict cookie on the way from there: the page takes one more step of its own."""
    async with visiting(with_token) as visitor:
        across = BROWSER | {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        for path in ("/app?page=race", f"/app?page=race&token={TOKEN}"):
            answer = await visitor.get(path, across)
            assert answer.code == 200
            assert 'content="0; url=./app?page=race"' in answer.body.decode()


async def test_wrong_passwords_are_refused_after_a_few_and_delay_the_right_one_by_seconds_at_most() -> None:
    async with visiting(lambda port: Gate.at("127.0.0.1", port, Password("correct horse"))) as visitor:
        answers = await asyncio.gather(*(visitor.post("/login", word=f"guess {i}") for i in range(60)))
        codes = [answer.code for answer in answers]
        assert codes.count(403) == attempts.MOST_AT_ONCE
        assert codes.count(429) == 60 - attempts.MOST_AT_ONCE
        assert all(int(answer.headers["Retry-After"]) <= 4 for answer in answers if answer.code == 429)
        begun = asyncio.get_running_loop().time()
        right = await visitor.post("/login", word="correct horse")
        assert (await visitor.get("/app", cookie(right))).code == 200
        assert asyncio.get_running_loop().time() - begun < 5
        assert (await visitor.get("/app?token=correct+horse", BROWSER)).headers["Location"].startswith("./login")


def test_passwords_from_many_addresses_hold_up_no_page() -> None:
    async def tries() -> None:
        gate = Gate.at("127.0.0.1", 5006, Password("correct horse"))
        wrong = [asyncio.ensure_future(gate.attempt("guess", f"10.0.0.{number % 20}")) for number in range(60)]
        await asyncio.sleep(0)
        await asyncio.to_thread(str)
        assert not all(attempt.done() for attempt in wrong)
        assert (await gate.attempt("correct horse", "10.0.1.1"))[0] is gate.secret
        assert {await attempt for attempt in wrong} == {(None, 0.0)}

    asyncio.run(tries())


@pytest.mark.parametrize("way", ["form", "address", "header"])
async def test_wrong_tokens_are_refused_after_a_few_and_never_the_right_one(way: str) -> None:
    async with visiting(with_token) as visitor:

        async def tries(word: str) -> int:
            if way == "form":
                return (await visitor.post("/login", word=word)).code
            if way == "address":
                return (await visitor.get(f"/app?token={word}", BROWSER)).code
            return (await visitor.get("/app", {"Authorization": f"Bearer {word}"})).code

        codes = [await tries(f"guess{i}") for i in range(8)]
        assert codes[:5] == [302 if way == "address" else 403] * 5
        assert codes[5:] == [429] * 3
        assert await tries(TOKEN) == (200 if way == "header" else 302)
        allowed = await visitor.get(f"/app?token={TOKEN}", BROWSER)
        assert (await visitor.get("/app", cookie(allowed) | {"Authorization": "Bearer other"})).code == 200


@pytest.mark.parametrize("given", ["?bokeh-token=a.b", "?bokeh-session-id=mine", ""])
async def test_no_client_chooses_a_session(given: str) -> None:
    async with visiting(open_to_all) as visitor:
        for path in ("/app", "/app/metadata", "/app/autoload.js"):
            headers = {} if given else {"Bokeh-Session-Id": "mine"}
            assert (await visitor.get(path + given, headers)).code == 403


# --- hosts and origins


async def test_a_name_that_leads_here_is_not_enough() -> None:
    """As it was tried: a site whose name resolves to 127.0.0.1, with Host and Origin alike."""
    async with visiting(open_to_all) as visitor:
        port = visitor.port
        for host in (f"evil.example:{port}", "evil.example", f"127.0.0.1:{port + 1}", f"127.0.0.1.evil:{port}"):
            assert (await visitor.get("/app", {"Host": host})).code == 403, host
            assert not await visitor.shakes_hands(Host=host, Origin=f"http://{host}"), host
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
            assert (await visitor.get("/app", {"Host": host})).code == 200, host
            assert await visitor.shakes_hands(Host=host, Origin=f"http://{host}"), host
        for origin in ("http://evil.example", "null", f"http://127.0.0.1:{port + 1}", f"ftp://127.0.0.1:{port}"):
            assert not await visitor.shakes_hands(Origin=origin), origin
            assert (await visitor.get("/app", {"Origin": origin})).code == 403


async def test_names_are_added_with_their_port() -> None:
    def gate(port: int) -> Gate:
        return Gate.at("127.0.0.1", port, None, hosts=["lab.example.org", "hub.example.org:8443"])

    async with visiting(gate) as visitor:
        for host in ("lab.example.org", f"lab.example.org:{visitor.port}", "hub.example.org:8443"):
            assert (await visitor.get("/app", {"Host": host})).code == 200, host
        for origin in ("https://lab.example.org", "https://lab.example.org:443", "https://hub.example.org:8443"):
            assert await visitor.shakes_hands(Origin=origin), origin
        for origin in ("https://lab.example.org:9999", "https://hub.example.org", "https://x.lab.example.org"):
            assert not await visitor.shakes_hands(Origin=origin), origin


async def test_on_all_addresses_it_answers_under_the_one_that_was_called() -> None:
    async with visiting(lambda port: Gate(frozenset(), None, any_address=True)) as visitor:
        assert (await visitor.get("/app")).code == 200
        for host in (f"192.0.2.7:{visitor.port}", f"evil.example:{visitor.port}"):
            assert (await visitor.get("/app", {"Host": host})).code == 403


NO_HOSTS = ("", "a b", "https://lab.example.org", "lab.example.org/path", "*", "a:port")
NO_ORIGINS = ("course.example.org", "https://a.org/page", "*", "https://a.org; script-src *")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        *(({"hosts": [host]}, "allow_host") for host in NO_HOSTS),
        *(({"frames": [origin]}, "embed_origin") for origin in NO_ORIGINS),
    ],
)
def test_what_is_no_host_and_no_origin_is_refused(given: dict[str, list[str]], field: str) -> None:
    with pytest.raises(BnnvizError) as caught:
        Gate.at("127.0.0.1", 5006, None, **given)
    assert caught.value.field == field


async def test_pages_of_other_sites_include_nothing() -> None:
    async with visiting(open_to_all) as visitor:
        for site in ("cross-site", "same-site"):
            part = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}
            assert (await visitor.get("/app/autoload.js?bokeh-autoload-element=a", part)).code == 403
            assert (await visitor.get("/app", {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"})).code == 200
        own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "no-cors"}
        assert (await visitor.get("/static/js/bokeh.min.js", own)).code == 200


async def test_no_foreign_address_is_repeated_into_a_script() -> None:
    async with visiting(open_to_all) as visitor:
        path = "/app/autoload.js?bokeh-autoload-element=a&"
        for name, value in (
            ("bokeh-absolute-url", "http://evil.example/app"),
            ("bokeh-absolute-url", "//evil.example"),
            ("bokeh-absolute-url", "javascript:alert(1)"),
            ("bokeh-app-path", '//evil.example";alert(1)//'),
        ):
            answer = await visitor.get(path + urlencode({name: value}))
            assert answer.code == 403
            assert b"evil" not in answer.body
        own = urlencode({"bokeh-absolute-url": f"{visitor.base}/app", "bokeh-app-path": "/app"})
        assert (await visitor.get(path + own)).code == 200


# --- headers and limits


async def test_every_answer_tells_the_browser_how_to_guard_the_page() -> None:
    frames = ["https://course.example.org"]
    async with visiting(lambda port: Gate.at("127.0.0.1", port, None, frames=frames)) as visitor:
        paths = ("/app", "/static/js/bokeh.min.js", "/nowhere", "/static/../../etc/passwd")
        answers = [await visitor.get(path) for path in paths]
        answers.append(await visitor.get("/app", {"Host": "evil.example"}))
        for answer in answers:
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "same-origin"
            assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
            statement = answer.headers["Content-Security-Policy"]
            assert "frame-ancestors 'self' https://course.example.org" in statement
            assert "default-src 'self';" in statement and "object-src 'none'" in statement
