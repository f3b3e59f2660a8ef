"""Routes that are called directly answer like FastAPI."""

import random
import re
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from pydantic import BaseModel
from starlette.testclient import TestClient

from server.http import direct_routes
from server.http.app import create_app
from server.http.direct_routes import DirectRoutes
from server.operations.settings import Settings
from tests.fakes.echo import EchoFor, EchoGenerator
from tests.server.http.protocols.fuzzing import Fuzzed, random_request
from tests.server.http.protocols.test_fuzzed_requests import FUZZED

NUM_REQUESTS = 30
_CASES = {
    **FUZZED,
    "native": Fuzzed(
        ("/v1/translate", "/v1/score"),
        (
            {"text": "Tea.", "target": "de"},
            {"text": ["Tea.", "{name}?"], "source": "en", "target": "de", "return_scores": True},
            {"text": "Tea.", "source": "en", "target": "de", "translation": "Tee."},
        ),
        {"x": "y"},
    ),
    "libretranslate": Fuzzed(
        ("/translate", "/detect", "/languages"),
        ({"q": "Tea.", "source": "en", "target": "de", "alternatives": 2, "format": "html"},),
        {"q": "Tea.", "source": "auto", "target": "de"},
    ),
    "deepl": Fuzzed(
        ("/v2/translate", "/v2/usage", "/v2/languages"),
        ({"text": ["Tea."], "source_lang": "EN", "target_lang": "DE", "tag_handling": "xml", "odd": 1},),
        {"text": "Tea.", "target_lang": "DE"},
    ),
}
# Differ from request to request.
_CHANGING_HEADERS = ("server-timing",)
_CHANGING_FIELDS = re.compile(r'"(?:id|created)": ?(?:"[^"]*"|\d+)')


@pytest.fixture(scope="module")
def direct(compatible_engines: list[EchoGenerator]) -> Iterator[TestClient]:
    with TestClient(create_app(_settings(), compatible_engines)) as client:
        yield client


@pytest.fixture(scope="module")
def general(compatible_engines: list[EchoGenerator]) -> Iterator[TestClient]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(direct_routes, "_eligible_routes", lambda _: {})
        with TestClient(create_app(_settings(), compatible_engines)) as client:
            yield client


@pytest.fixture(scope="module")
def compatible_engines(echo_for: EchoFor) -> list[EchoGenerator]:
    return [echo_for("en", "de"), echo_for("de", "en")]


def _settings() -> Settings:
    return Settings(max_texts=20, max_text_characters=2000, max_body_bytes=20_000)


@pytest.mark.parametrize("name", _CASES)
def test_a_direct_answer_equals_the_general_one(direct: TestClient, general: TestClient, name: str) -> None:
    case, chance, statuses = _CASES[name], random.Random(name), set()
    requests = [direct.build_request("POST", path, json=body) for path in case.paths for body in case.bodies]
    requests += [random_request(direct, case, chance) for _ in range(NUM_REQUESTS)]
    for number, request in enumerate(requests):
        request.headers["X-Request-ID"] = f"{name}-{number}"
        answer = direct.send(request)
        assert _comparable(answer) == _comparable(general.send(request)), (request.url, request.content[:300])
        statuses.add(answer.status_code)
    assert 200 in statuses


def _comparable(answer: httpx2.Response) -> tuple[int, dict[str, str], str]:
    headers = {name: value for name, value in answer.headers.items() if name not in _CHANGING_HEADERS}
    return answer.status_code, headers, _CHANGING_FIELDS.sub("", answer.text)


class _Body(BaseModel):
    number: int


def _router(events: list[str]) -> APIRouter:
    router = APIRouter()

    async def around(request: Request) -> AsyncIterator[str]:
        events.append("before")
        yield request.url.path
        events.append("after")

    @router.post("/twice")
    async def twice(body: _Body, response: Response, path: str = Depends(around)) -> dict[str, object]:
        events.append("called")
        response.headers["X-Path"] = path
        return {"twice": 2 * body.number}

    @router.get("/status")
    async def status(response: Response) -> str:
        response.status_code = 503
        return "draining"

    @router.get("/{name}")
    async def named(name: str) -> str:
        return name

    @router.get("/twice")
    async def hidden() -> str:
        return "the path before matches"

    @router.get("/other/query")
    async def query(number: int = 1) -> int:
        return number

    return router


def test_dependencies_headers_and_the_order_of_routes_are_those_of_fastapi() -> None:
    events: list[str] = []
    answers = []
    for is_direct in (True, False):
        app = FastAPI()
        app.include_router(_router(events))
        if is_direct:
            app.add_middleware(DirectRoutes, application=app)
        with TestClient(app) as client:
            for method, path, body in (
                ("POST", "/twice", b'{"number": 4}'),
                ("POST", "/twice", b'{"number": "x"}'),
                ("POST", "/twice", b"[1]"),
                ("GET", "/twice", b""),
                ("GET", "/status", b""),
                ("GET", "/other/query?number=3", b""),
                ("PUT", "/twice", b"{}"),
            ):
                answer = client.request(method, path, content=body, headers={"Content-Type": "application/json"})
                answers.append((answer.status_code, answer.headers, answer.content))
    assert answers[: len(answers) // 2] == answers[len(answers) // 2 :]
    assert answers[0][0] == 200
    assert answers[0][1]["X-Path"] == "/twice"
    assert events[:3] == ["before", "called", "after"]
    assert events[: len(events) // 2] == events[len(events) // 2 :]
