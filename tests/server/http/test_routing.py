from collections.abc import Mapping

import pytest
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from fastapi.routing import APIRoute
from httpx2 import Response as Answer
from pydantic import BaseModel
from starlette.responses import JSONResponse
from starlette.testclient import TestClient

from server.http.responses.errors import ErrorFormats, install_error_handlers
from server.http.routing import FixedPaths, PlainRoute

JSON = {"content-type": "application/json"}


class Body(BaseModel):
    """A body."""

    text: str
    numbers: tuple[int, ...] = ()


def _router(route_class: type[APIRoute]) -> APIRouter:
    router = APIRouter(route_class=route_class)

    @router.post("/body")
    async def with_body(body: Body, request: Request) -> Response:
        return Response(f"{request.method} {body.text!a} {body.numbers}")

    @router.post("/alone")
    async def alone(request: Request) -> JSONResponse:
        return JSONResponse(repr(await request.body()))

    @router.get("/named/{name}")
    async def named(name: str) -> dict[str, str]:
        return {"name": name}

    return router


def _client(app: FastAPI) -> TestClient:
    install_error_handlers(app, ErrorFormats({}))
    return TestClient(app)


@pytest.fixture
def clients() -> tuple[TestClient, TestClient]:
    """Clients of plain routes, found by their paths, and of FastAPI's."""
    apps = FastAPI(), FastAPI()
    for app, route_class in zip(apps, (PlainRoute, APIRoute), strict=True):
        app.router.routes.extend(_router(route_class).routes)
    apps[0].router.routes.insert(0, FixedPaths(apps[0].router.routes))
    return _client(apps[0]), _client(apps[1])


BODIES: Mapping[str, tuple[bytes, Mapping[str, str]]] = {
    "valid": (b'{"text": "a", "numbers": [1, 2]}', JSON),
    "of a vendor": (b'{"text": "a"}', {"content-type": "application/vnd.kvasir+json; charset=utf-8"}),
    "missing field": (b"{}", JSON),
    "wrong fields": (b'{"text": 1, "numbers": ["x", 2]}', JSON),
    "a list": (b"[1]", JSON),
    "empty": (b"", JSON),
    "without a type": (b'{"text": "a"}', {"content-type": ""}),
    "as text": (b'{"text": "a"}', {"content-type": "text/plain"}),
    "as an unreadable type": (b'{"text": "a"}', {"content-type": ";;/"}),
    "cut": (b'{"text": "a"', JSON),
    "not UTF-8": (b'{"text": "\xff"}', JSON),
    "nested": (b"[" * 100_000, JSON),
    "long number": (b"1" * 5000, JSON),
    "lone surrogate": (b'{"text": "\\ud800"}', JSON),
}


def _content(answer: Answer) -> tuple[int, str, str]:
    return answer.status_code, answer.headers.get("content-type", ""), answer.text


@pytest.mark.parametrize("path", ["/body", "/alone"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_plain_route_answers_as_one_of_fastapi(
    clients: tuple[TestClient, TestClient], path: str, body: tuple[bytes, Mapping[str, str]]
) -> None:
    content, headers = body
    ours, theirs = (_content(each.post(path, content=content, headers=headers)) for each in clients)
    assert ours == theirs


@pytest.mark.parametrize(("method", "path"), [("GET", "/body"), ("POST", "/body/"), ("GET", "/named/x"), ("GET", "/y")])
def test_what_a_look_up_does_not_find_is_left_to_the_router(
    clients: tuple[TestClient, TestClient], method: str, path: str
) -> None:
    ours, theirs = (_content(each.request(method, path, follow_redirects=False)) for each in clients)
    assert ours == theirs


def test_a_plain_route_with_dependencies_calls_them() -> None:
    async def refuse() -> None:
        raise HTTPException(403)

    of_router, of_application = FastAPI(), FastAPI()
    router = APIRouter(route_class=PlainRoute, dependencies=[Depends(refuse)])
    router.add_api_route("/alone", _alone, methods=["POST"])
    of_router.router.routes.extend(router.routes)
    of_application.include_router(_router(PlainRoute), dependencies=[Depends(refuse)])
    for app in (of_router, of_application):
        app.router.routes.insert(0, FixedPaths(app.router.routes))
        assert TestClient(app).post("/alone").status_code == 403


async def _alone(_: Request) -> Response:
    return Response()


def test_the_first_of_two_routes_with_a_path_is_found() -> None:
    app = FastAPI()
    for text in ("first", "second"):

        @app.get("/same")
        async def answer(_: Request, text: str = text) -> Response:
            return Response(text)

    app.router.routes.insert(0, FixedPaths(app.router.routes))
    assert TestClient(app).get("/same", params={"text": "first"}).text == "first"
    assert app.url_path_for("answer") == "/same"
