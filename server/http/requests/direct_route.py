"""Routes of frequent requests."""

from collections.abc import Callable
from functools import cached_property
from inspect import signature

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.types import Message, Receive, Scope, Send

from server.http.requests.parameters import header
from server.http.state import server_state


class DirectRoute(APIRoute):
    """A route that calls its endpoint without FastAPI's solver, which takes a tenth of the time of a request.

    For endpoints that return a response, of the parameter `request` and optionally a JSON `body`. Whatever is unusual
    takes FastAPI's way: API keys, which are dependencies, other media types, and invalid bodies, which it describes.
    """

    @cached_property
    def _is_direct(self) -> bool:
        called = signature(self.endpoint, eval_str=True)
        return called.return_annotation is Response and called.parameters.keys() <= {"body", "request"}

    @cached_property
    def _read_body(self) -> Callable[[bytes], BaseModel] | None:
        body = signature(self.endpoint, eval_str=True).parameters.get("body")
        return None if body is None else body.annotation.model_validate_json

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive, send)
        arguments: dict[str, BaseModel] = {}
        is_direct = (
            self._is_direct and scope["method"] in (self.methods or ()) and server_state(request).key_gate is None
        )
        if is_direct and self._read_body is not None:
            is_direct = header(scope, b"content-type").startswith("application/json")
            if is_direct:
                content = await request.body()
                try:
                    arguments["body"] = self._read_body(content)
                except ValidationError:
                    is_direct, receive = False, _again(content, receive)
        if is_direct:
            response = await self.endpoint(request=request, **arguments)
            await response(scope, receive, send)
        else:
            await super().handle(scope, receive, send)


def _again(content: bytes, receive: Receive) -> Receive:
    """Return a function that receives a body that was read, and then goes on."""
    messages: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again
