"""The application for administration, on a port of its own: models and load of the server, and its metrics."""

from typing import Annotated

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from server.http.admin import activity, models
from server.http.middleware.body import BodyLimits
from server.http.middleware.gate import Gate, Hosts, check_head, default_hosts
from server.http.monitoring import health_router, metrics_router
from server.http.responses.error_formats import ErrorFormats
from server.http.responses.errors import error_response, install_error_handlers
from server.http.state import ServerState
from server.interface.errors import EngineFailed, MissingApiKey, NotFound
from server.operations.api_keys.key_gate import KeyGate

_MAX_BODY_BYTES = 64_000

_Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]


def create_admin_app(server: ServerState, gate: KeyGate | None) -> FastAPI:
    """Return an application that administers `server`, which another application serves in the same event loop.

    With a `gate`, requests need one of its keys.
    """
    settings = server.settings
    app = FastAPI(title="Kvasir administration", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.server = server
    formats = ErrorFormats({})
    install_error_handlers(app, formats)
    app.add_exception_handler(404, _on_unknown_path)
    app.add_exception_handler(Exception, _on_defect)
    dependencies = []
    if gate is not None:

        async def check_key(credentials: _Credentials) -> None:
            if credentials is None:
                raise MissingApiKey("administration requires a key; send it as `Authorization: Bearer KEY`")
            gate.authenticate(credentials.credentials)

        dependencies.append(Depends(check_key))
    app.include_router(models.router, dependencies=dependencies)
    app.include_router(activity.router, dependencies=dependencies)
    app.include_router(metrics_router, dependencies=dependencies)
    app.include_router(health_router)
    app.add_middleware(BodyLimits, max_body_bytes=_MAX_BODY_BYTES)
    # No page of another site may change models by way of an administrator's browser.
    hosts = Hosts(default_hosts(settings.admin_host), [], has_settings=False)
    app.add_middleware(Gate, checks=[check_head, hosts], formats=formats)
    return app


async def _on_unknown_path(_: Request, __: Exception) -> JSONResponse:
    """Return the response to a request without a route. The public port alone has a description of its operations."""
    return error_response(NotFound("no such path; administration is at /admin/models and /admin/activity"))


async def _on_defect(_: Request, error: Exception) -> JSONResponse:
    """Return the response to an unexpected exception, whose traceback the server logs."""
    return error_response(EngineFailed(f"internal error ({type(error).__name__}); the server log has the cause"))
