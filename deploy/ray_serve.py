"""Kvasir on several machines behind Ray Serve: `serve run deploy.ray_serve:application` in a checkout.

A gateway receives HTTP requests and passes them to replicas, each with the whole application of `kvasir serve`. If a
replica dies, the gateway sends its requests to another one, unless a part of the answer was already sent. Replicas are
added and removed by the number of ongoing requests, and load the models that are requested from them. Paths that store
something (documents, glossaries) go to a deployment with one replica. Settings are the KVASIR_… variables.
"""

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ray import exceptions, serve
from ray.serve import exceptions as serve_exceptions
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from bundle.loading import load_bundle
from bundle.manifest import BundleConfig
from server.http.app import create_app
from server.operations.bundle_search import bundle_folders
from server.operations.settings import Settings

_log = logging.getLogger("kvasir.ray")

ALL_MODELS = "*"
_STORING_PATHS = ("/v1/documents", "/v2/document", "/v2/glossar", "/v3/glossar", "/translate_file", "/download_file")
_MAX_ATTEMPTS = 5
_RETRY_SECONDS = 0.2
_REPLICA_LOST = (exceptions.RayActorError, exceptions.ActorUnavailableError, serve_exceptions.ReplicaUnavailableError)
_DROPPED_HEADERS = frozenset({"connection", "transfer-encoding"})

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request, complete, on its way to a replica."""

    method: str
    path: str
    query: str
    headers: Headers
    client: str
    body: bytes


class Application:
    """The application of `kvasir serve` with some models, called in this process."""

    def __init__(self, settings: Settings) -> None:
        self._app = create_app(settings)
        self._lifespan = self._app.router.lifespan_context(self._app)
        self._loop = asyncio.get_running_loop()
        self._is_closed = False

    async def open(self) -> "Application":
        """Load the models."""
        await self._lifespan.__aenter__()
        return self

    async def respond(self, call: Call) -> AsyncIterator[object]:
        """Yield status and headers, then the parts of the body. Closing the iterator cancels the request."""
        scope: dict[str, object] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": call.method,
            "scheme": "http",
            "path": call.path,
            "raw_path": call.path.encode(),
            "root_path": "",
            "query_string": call.query.encode("latin-1"),
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in call.headers],
            "client": (call.client, 0),
            "server": None,
        }
        messages: asyncio.Queue[Any] = asyncio.Queue(maxsize=16)
        bodies = [{"type": "http.request", "body": call.body, "more_body": False}]

        async def receive() -> Any:  # noqa: ANN401 - a message of ASGI
            if bodies:
                return bodies.pop()
            await asyncio.Event().wait()  # the gateway closes this iterator if its client disconnects
            return None

        task = asyncio.create_task(self._app(scope, receive, messages.put))
        task.add_done_callback(lambda _: messages.put_nowait(None) if not messages.full() else None)
        try:
            while (message := await messages.get()) is not None:
                if message["type"] == "http.response.start":
                    yield (
                        message["status"],
                        [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]],
                    )
                elif message["body"]:
                    yield message["body"]
                if message["type"] == "http.response.body" and not message.get("more_body", False):
                    return
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task

    @property
    def is_responsive(self) -> bool:
        """Whether every model has an engine that decodes."""
        return all(engine.status().has_engine for engine in self._app.state.server.engines)

    async def close(self) -> None:
        """Unload the models, and write the usage of API keys."""
        if not self._is_closed:
            self._is_closed = True
            await self._lifespan.__aexit__(None, None, None)

    def __del__(self) -> None:
        """Called by Ray Serve, in a thread, when a replica gives up its least recently used model."""
        if not self._is_closed and self._loop.is_running():
            with contextlib.suppress(RuntimeError, TimeoutError):
                asyncio.run_coroutine_threadsafe(self.close(), self._loop).result(30)


class Replica:
    """Answers calls of the gateway. Each set of models is an application of its own, loaded when it is requested."""

    def __init__(self) -> None:
        # One process and one engine thread: Ray Serve adds replicas, not engines.
        self._settings = Settings().model_copy(
            update={"engine_processes": False, "threads": _whole("KVASIR_RAY_THREADS", 1)}
        )
        self._folders = {
            load_bundle(path, verify_digests=False).config.name: path for path in bundle_folders(self._settings.model)
        }
        self._open: list[Application] = []

    async def respond(self, call: Call) -> AsyncIterator[object]:
        """Yield status and headers, then the parts of the body."""
        application = await self.application(serve.get_multiplexed_model_id() or ALL_MODELS)
        async for part in application.respond(call):
            yield part

    @serve.multiplexed(max_num_models_per_replica=3)  # type: ignore[untyped-decorator]
    async def application(self, model: str) -> Application:
        """Return the application with a model, or with all; the least recently used one is closed for it."""
        folders = list(self._folders.values()) if model == ALL_MODELS else [self._folders[model]]
        application = await Application(self._settings.model_copy(update={"model": folders})).open()
        self._open = [each for each in self._open if not each._is_closed] + [application]
        return application

    def check_health(self) -> None:
        """Raise an error, so that Ray Serve replaces the replica, if an engine is stuck."""
        if not all(application.is_responsive for application in self._open if not application._is_closed):
            raise RuntimeError("an engine does not respond")


class Gateway:
    """Receives HTTP requests, chooses their models, and passes them to replicas until one answers."""

    def __init__(self, replicas: Any, storing: Any) -> None:  # noqa: ANN401 - handles of Ray Serve
        self._replicas, self._storing = replicas, storing
        settings = Settings()
        self._configs = [load_bundle(path, verify_digests=False).config for path in bundle_folders(settings.model)]
        self._max_bytes = max(
            settings.max_body_bytes, settings.max_file_megabytes * 1_000_000 + settings.max_body_bytes
        )

    async def __call__(self, request: Request) -> Response:
        """Answer one request."""
        body = b""
        with contextlib.suppress(ClientDisconnect):
            async for chunk in request.stream():
                body += chunk
                if len(body) > self._max_bytes:
                    return _error(413, "body_too_large", f"the body must have at most {self._max_bytes} bytes")
        call = Call(
            request.method,
            request.url.path,
            request.url.query,
            [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw],
            request.client.host if request.client else "",
            body,
        )
        stores = call.path.startswith(_STORING_PATHS)
        model = ALL_MODELS if stores else chosen_model(self._configs, call)
        handle = (self._storing if stores else self._replicas).respond.options(stream=True, multiplexed_model_id=model)
        return await self._answer(handle, call, may_repeat=not (stores and call.method == "POST"))

    async def _answer(self, handle: Any, call: Call, *, may_repeat: bool) -> Response:  # noqa: ANN401
        """Return the answer of a replica. Other replicas are tried if it dies before anything was sent."""
        for attempt in range(_MAX_ATTEMPTS if may_repeat else 1):
            parts = handle.remote(call)
            try:
                status, headers = await anext(parts)
                kept = {name: value for name, value in headers if name.lower() not in _DROPPED_HEADERS}
                if any(name.lower() == "content-length" for name in kept):
                    return Response(b"".join([part async for part in parts]), status, kept)
                return StreamingResponse(_continued(await anext(parts, b""), parts), status, kept)
            except serve_exceptions.BackPressureError:
                return _error(429, "queue_full", "all replicas are busy; retry after 1 s", {"Retry-After": "1"})
            except _REPLICA_LOST as error:
                _log.warning("replica lost", extra={"attempt": attempt, "cause": type(error).__name__})
                await asyncio.sleep(_RETRY_SECONDS * attempt)
        return _error(503, "draining", "the replica of this request was lost; send it again", {"Retry-After": "1"})


async def _continued(first: bytes, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for part in parts:
        yield part


def chosen_model(configs: Sequence[BundleConfig], call: Call) -> str:
    """Return the model for a call: the one in the header `X-Kvasir-Model`, or of its languages; else all models."""
    names = [config.name for config in configs]
    if len(names) == 1:
        return names[0]
    wanted = next((value for name, value in call.headers if name.lower() == "x-kvasir-model"), "")
    if wanted in names:
        return wanted
    try:
        fields = json.loads(call.body)
    except ValueError:
        return ALL_MODELS
    if not isinstance(fields, dict):
        return ALL_MODELS
    source, target = (
        str(fields.get(name) or fields.get(f"{name}_lang") or "").lower() for name in ("source", "target")
    )
    for config in configs:
        if source in map(str.lower, config.source_languages) and target in map(str.lower, config.target_languages):
            return config.name
    return ALL_MODELS


def _error(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)


def _whole(variable: str, default: int) -> int:
    return int(os.environ.get(variable, default))


def deployed(runtime_env: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - an application of Ray Serve
    """Return the application: a gateway, replicas that scale, and one replica for what is stored.

    `runtime_env` is the environment of the replicas; a change of it replaces them, one after the other.
    """
    of_replica: dict[str, Any] = {
        "max_ongoing_requests": _whole("KVASIR_RAY_MAX_ONGOING", 64),
        # Longer than `request_timeout_seconds`: a replica that is removed finishes its requests.
        "graceful_shutdown_timeout_s": 70,
        "graceful_shutdown_wait_loop_s": 0.5,
        "health_check_period_s": 5,
        "health_check_timeout_s": 30,
        "ray_actor_options": {
            "num_cpus": float(os.environ.get("KVASIR_RAY_CPUS", "1")),
            "runtime_env": dict(runtime_env or {}),
        },
    }
    scaling = {
        "min_replicas": _whole("KVASIR_RAY_MIN_REPLICAS", 1),
        "max_replicas": _whole("KVASIR_RAY_MAX_REPLICAS", 8),
        "target_ongoing_requests": _whole("KVASIR_RAY_TARGET_ONGOING", 8),
        "upscale_delay_s": 5,
        "downscale_delay_s": 120,
    }
    replicas = serve.deployment(Replica, name="replica", autoscaling_config=scaling, **of_replica).bind()
    storing = serve.deployment(Replica, name="storing", num_replicas=1, **of_replica).bind()
    gateway = serve.deployment(
        Gateway,
        name="gateway",
        num_replicas=_whole("KVASIR_RAY_GATEWAYS", 1),
        max_ongoing_requests=1000,
        graceful_shutdown_timeout_s=80,
        ray_actor_options={"num_cpus": 0},
    )
    return gateway.bind(replicas, storing)


application = deployed()
