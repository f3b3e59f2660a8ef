"""Routes of the application: those that FastAPI only describes, and the look-up of paths."""

import inspect
import json
from collections.abc import Callable, Coroutine, Iterable
from email.message import Message
from functools import lru_cache
from typing import Any, Never, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, NoMatchFound, Route, request_response
from starlette.types import Receive, Scope, Send

from server.http.requests.parameters import header, path_of

_FOUND = "kvasir.route"  # key of the scope

_Endpoint = Callable[..., Coroutine[None, None, Response]]


class PlainRoute(APIRoute):
    """A route that calls an endpoint `(request)` or `(body, request)` itself, if it returns a response.

    FastAPI describes the operation. Its solver of dependencies takes a quarter of the server's time for a short text,
    and has nothing to do here; it serves all other endpoints, and those whose route has dependencies.
    """

    def __init__(self, path: str, endpoint: _Endpoint, **options: Any) -> None:  # noqa: ANN401 - FastAPI's
        super().__init__(path, endpoint, **options)
        if options.get("dependencies") or not inspect.iscoroutinefunction(endpoint):
            return
        types = get_type_hints(endpoint)
        returned, parameters = types.pop("return", None), list(types.values())
        if not (inspect.isclass(returned) and issubclass(returned, Response)):
            return
        if parameters == [Request]:
            self.app = request_response(endpoint)
        elif len(parameters) == 2 and parameters[1] is Request and issubclass(parameters[0], BaseModel):
            self.app = request_response(_reading(parameters[0], endpoint))


def _reading(model: type[BaseModel], endpoint: _Endpoint) -> _Endpoint:
    async def respond(request: Request) -> Response:
        content = await request.body()
        try:
            body = model.model_validate(_content(content, header(request.scope, b"content-type")))
        except ValidationError as error:
            problems = [{**each, "loc": ("body", *each["loc"])} for each in error.errors(include_url=False)]
            raise RequestValidationError(problems) from error
        return await endpoint(body, request)

    return respond


def _content(body: bytes, content_type: str) -> object:
    """Return the JSON of a body, and any other body as it is, with the errors of FastAPI."""
    if not body or not _is_json(content_type):
        return body
    try:
        return json.loads(body)
    except json.JSONDecodeError as error:
        problem = {"type": "json_invalid", "loc": ("body", error.pos), "msg": error.msg, "ctx": {"error": error.msg}}
        raise RequestValidationError([problem]) from error
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, "There was an error parsing the body") from error


@lru_cache(64)
def _is_json(content_type: str) -> bool:
    message = Message()
    message["content-type"] = content_type
    kind, _, subtype = message.get_content_type().partition("/")
    return bool(content_type) and kind == "application" and (subtype == "json" or subtype.endswith("+json"))


class FixedPaths(BaseRoute):
    """Finds the route of a path without parameters by a look-up, before a router tries its routes one by one.

    It serves only what its route does, so that all else, such as another method, is left to the router.
    """

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        """Of two routes with one path and method, the first is found, as by a router."""
        self._routes: dict[tuple[str, str], Route] = {}
        for route in routes:
            if isinstance(route, Route) and not route.param_convertors:
                for method in route.methods or ():
                    self._routes.setdefault((method, route.path), route)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return the match of the route that has the path."""
        route = self._routes.get((scope.get("method", ""), path_of(scope)))
        if route is None:
            return Match.NONE, {}
        match, found = route.matches(scope)
        return match, {**found, _FOUND: route}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the route that was found."""
        await scope[_FOUND].handle(scope, receive, send)

    def url_path_for(self, name: str, /, **path_params: object) -> Never:
        """Leave the addresses of routes to the routes."""
        raise NoMatchFound(name, path_params)
