"""Routes with fixed paths, called without FastAPI's general machinery."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from inspect import isasyncgenfunction, isawaitable, iscoroutinefunction, isroutine
from typing import Protocol, cast, get_type_hints

from fastapi import FastAPI, Request, Response
from fastapi.datastructures import DefaultPlaceholder
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError, ResponseValidationError
from fastapi.routing import RouteContext, iter_route_contexts
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.raw_headers import header
from server.http.state import request_record, server_state

_JSON = "application/json"
_PROMPT = (server_state, request_record)  # functions that need no thread

Handler = Callable[[Request, Exception], Awaitable[Response]]


class DirectRoutes:
    """ASGI application that calls eligible routes of a FastAPI application itself, with the same answers.

    FastAPI solves every request anew, which takes more time than a short text does. A route is eligible if its path has
    no parameters, if it and its dependencies are coroutines that take nothing but the request, the response and one
    JSON body, and if its answer is JSON with status 200 or a response of its own. All other requests, and those with a
    body that is not a JSON object, go to FastAPI.
    """

    def __init__(self, app: ASGIApp, application: FastAPI) -> None:
        """`app` is the next middleware. The application must have all its routes and error handlers."""
        self._app = app
        self._routes = _eligible_routes(list(iter_route_contexts(application.routes)))
        handlers = {kind: each for kind, each in application.exception_handlers.items() if isinstance(kind, type)}
        self._handlers = cast(Mapping[type[Exception], Handler], handlers)
        self._handled = tuple(self._handlers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes."""
        route = None
        if scope["type"] == "http" and not scope.get("root_path"):
            route = self._routes.get((scope["method"], scope["path"]))
        if route is None:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive, send)
        response: Response | None = None
        try:
            body: dict[str, object] | None = None
            if route.body_name is not None:
                body, receive = await _read_json(request)
                if body is None:
                    await self._app(scope, receive, send)
                    return
                request = Request(scope, receive, send)
            scope["route"], scope["endpoint"], scope["path_params"] = route.context.original_route, route.endpoint, {}
            async with AsyncExitStack() as exits:
                response = await route.respond(request, body, exits)
                await response(scope, receive, send)
        except self._handled as error:
            if response is not None:  # it may have begun
                raise
            handler = next(self._handlers[base] for base in type(error).__mro__ if base in self._handlers)
            await (await handler(request, error))(scope, receive, send)


class _Field(Protocol):
    """A pydantic type as FastAPI keeps it."""

    def validate(
        self, value: object, values: dict[str, object], *, loc: tuple[int | str, ...]
    ) -> tuple[object, list[dict[str, object]]]: ...

    def serialize_json(self, value: object, *, exclude_none: bool, by_alias: bool) -> bytes: ...


@dataclass(frozen=True, slots=True)
class _Dependency:
    """A coroutine or generator that runs before the endpoint; `name` is the endpoint's parameter for its result."""

    call: Callable[..., object]
    name: str | None
    request_name: str | None
    is_generator: bool

    async def run(self, request: Request, exits: AsyncExitStack) -> object:
        """Return its result; a generator ends after the response."""
        arguments = {} if self.request_name is None else {self.request_name: request}
        if self.is_generator:
            generator = cast(Callable[..., AsyncIterator[object]], self.call)
            return await exits.enter_async_context(asynccontextmanager(generator)(**arguments))
        result = self.call(**arguments)
        return await result if isawaitable(result) else result


@dataclass(frozen=True, slots=True)
class _DirectRoute:
    """A route, taken apart once."""

    context: RouteContext
    endpoint: Callable[..., Awaitable[object]]
    dependencies: Sequence[_Dependency]
    request_name: str | None
    response_name: str | None
    body_name: str | None
    body_field: _Field | None
    response_field: _Field | None
    exclude_none: bool

    async def respond(self, request: Request, body: dict[str, object] | None, exits: AsyncExitStack) -> Response:
        """Return the endpoint's response. Raises its errors, and `RequestValidationError` for an invalid body."""
        arguments: dict[str, object] = {}
        for dependency in self.dependencies:
            result = await dependency.run(request, exits)
            if dependency.name is not None:
                arguments[dependency.name] = result
        if self.body_name is not None and self.body_field is not None:
            arguments[self.body_name], errors = self.body_field.validate(body, {}, loc=("body",))
            if errors:
                raise RequestValidationError(errors, body=body)
        if self.request_name is not None:
            arguments[self.request_name] = request
        headers: Response | None = None  # of the answer, and its status if the endpoint sets one
        if self.response_name is not None:
            arguments[self.response_name] = headers = Response()
            del headers.headers["content-length"]
            headers.status_code = 0
        answer = await self.endpoint(**arguments)
        if isinstance(answer, Response):
            return answer
        assert self.response_field is not None
        value, errors = self.response_field.validate(answer, {}, loc=("response",))
        if errors:
            raise ResponseValidationError(errors, body=answer)
        content = self.response_field.serialize_json(value, exclude_none=self.exclude_none, by_alias=True)
        response = Response(content, media_type=_JSON)
        if headers is not None:
            response.status_code = headers.status_code or response.status_code
            response.headers.raw.extend(headers.headers.raw)
        return response


def _eligible_routes(contexts: Sequence[RouteContext]) -> dict[tuple[str, str], _DirectRoute]:
    """Return the routes by method and path. The first route that matches a request has it, as in FastAPI."""
    found: dict[tuple[str, str], _DirectRoute] = {}
    for index, context in enumerate(contexts):
        route = _direct(context)
        for method in () if route is None else sorted(context.methods or ()):
            if route is not None and not any(_matches(other, method, route) for other in contexts[:index]):
                found[method, context.path or ""] = route
    return found


def _matches(other: RouteContext, method: str, route: _DirectRoute) -> bool:
    pattern = getattr(other, "path_regex", None)
    is_of_method = other.methods is None or method in other.methods
    return pattern is None or bool(is_of_method and pattern.match(route.context.path or ""))


def _direct(context: RouteContext) -> _DirectRoute | None:
    """Return a route taken apart, or None if it is not eligible."""
    dependant: Dependant | None = getattr(context, "dependant", None)
    if dependant is None or not _is_plain(context):
        return None
    dependencies = [_dependency(each) for each in dependant.dependencies]
    own = dependant.path_params or dependant.query_params or dependant.header_params or dependant.cookie_params
    if own or None in dependencies or len(dependant.body_params) > 1 or not iscoroutinefunction(dependant.call):
        return None
    if dependant.background_tasks_param_name:
        return None
    return _DirectRoute(
        context,
        dependant.call,
        [each for each in dependencies if each is not None],
        _request_name(dependant),
        dependant.response_param_name,
        dependant.body_params[0].name if dependant.body_params else None,
        context.body_field,
        context.response_field,
        bool(context.response_model_exclude_none),
    )


def _is_plain(context: RouteContext) -> bool:
    """Return whether a route has one way to write its answer: as JSON with status 200, or as its own response."""
    settings = (
        context.response_model_include,
        context.response_model_exclude,
        context.response_model_exclude_unset,
        context.response_model_exclude_defaults,
        context.is_sse_stream,
        context.is_json_stream,
        context._embed_body_fields,
    )
    is_default = isinstance(context.response_class, DefaultPlaceholder) and context.response_model_by_alias
    return (
        not any(settings)
        and is_default
        and (context.response_field is not None or _returns_response(context.endpoint))
        and context.status_code in (None, 200)
        and "{" not in (context.path or "{")
    )


def _returns_response(endpoint: Callable[..., object] | None) -> bool:
    returned = get_type_hints(endpoint).get("return") if endpoint is not None else None
    return isinstance(returned, type) and issubclass(returned, Response)


def _request_name(dependant: Dependant) -> str | None:
    return dependant.request_param_name or dependant.http_connection_param_name


def _dependency(dependant: Dependant) -> _Dependency | None:
    """Return a dependency, or None if it takes more than the request or blocks a thread."""
    given = (dependant.path_params, dependant.query_params, dependant.header_params, dependant.cookie_params)
    if any(given) or dependant.body_params or dependant.dependencies or dependant.call is None:
        return None
    if dependant.response_param_name or dependant.background_tasks_param_name or dependant.scope == "function":
        return None
    is_generator = isasyncgenfunction(dependant.call)
    call = dependant.call if isroutine(dependant.call) else type(dependant.call).__call__  # such as HTTPBearer
    if not is_generator and not iscoroutinefunction(call) and call not in _PROMPT:
        return None
    return _Dependency(dependant.call, dependant.name, _request_name(dependant), is_generator)


async def _read_json(request: Request) -> tuple[dict[str, object] | None, Receive]:
    """Return the JSON object in the body, or None, and a function that receives the body again."""
    messages: list[Message] = []
    receive = request.receive
    if header(request.scope, b"content-type").partition(";")[0].strip().lower() == _JSON:
        while not messages or messages[-1].get("more_body", False):
            messages.append(await receive())
    remaining = iter(messages)

    async def replay() -> Message:
        return next(remaining, None) or await receive()

    try:
        content = json.loads(b"".join([message.get("body", b"") for message in messages]))
    except (ValueError, RecursionError):  # FastAPI describes the error
        return None, replay
    return content if isinstance(content, dict) else None, replay
