"""Admission of requests that need an engine, before their body is read."""

from starlette.types import ASGIApp, Receive, Scope, Send

from server.http.middleware.engine_admission import EngineAdmission
from server.http.responses.error_formats import ErrorFormats
from server.http.responses.errors import unread_error_response
from server.interface.errors import KvasirError


class RequestAdmission:
    """ASGI middleware that rejects requests unread while no model accepts any.

    Routes reject them too late: FastAPI has read and parsed a JSON body when the first dependency of a route runs.
    """

    def __init__(self, app: ASGIApp, admission: EngineAdmission, formats: ErrorFormats) -> None:
        self._app = app
        self._admission = admission
        self._formats = formats

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes."""
        if scope["type"] == "http":
            try:
                self._admission.check(scope, str(scope["path"]).removeprefix(str(scope.get("root_path", ""))))
            except KvasirError as error:
                await unread_error_response(error, self._formats.of(scope), scope)(scope, receive, send)
                return
        await self._app(scope, receive, send)
