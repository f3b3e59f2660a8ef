"""HTTP application of the other servers: the part of Kvasir's protocol that a load test uses."""

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass

import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from benchmarks.servers.batching import BatchOptions, BatchQueue, Engine, QueueFull
from benchmarks.servers.texts import Pieces, Tokenizer, join, split

MAX_BEAM_SIZE = 8
DEFAULT_BEAM_SIZE = 4  # of Kvasir
WARM_UP = ("Good morning.", "Where is the station, and when does the next train leave?")


class TranslateBody(BaseModel):
    """Native request. Unknown fields are rejected, because ignoring them would measure something else."""

    model_config = ConfigDict(extra="forbid")

    text: str | list[str]
    source: str | None = None
    target: str | None = None
    beam_size: int | None = Field(None, ge=1, le=MAX_BEAM_SIZE)


@dataclass(frozen=True, slots=True)
class Translated:
    """Translation of a text; token counts include the end of every sentence."""

    text: str
    source_tokens: int
    target_tokens: int


class Service:
    """Translation of texts: splits them into sentences, queues these, and joins the answers."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        engine: Engine,
        options: BatchOptions,
        language: str = "en",
        default_beam_size: int = DEFAULT_BEAM_SIZE,
    ) -> None:
        self._tokenizer = tokenizer
        self._language = language
        self.default_beam_size = default_beam_size
        """Beam size of requests without one."""
        self.queue = BatchQueue(engine, options)

    async def translate(self, texts: list[str], beam_size: int | None = None) -> list[Translated]:
        """Return the translations in the order of the texts. Raises `QueueFull`."""
        parts = [split(text, self._language, self._tokenizer.fits) for text in texts]
        sources = [[self._tokenizer.encode(part.text) for part in of_text if part.is_sentence] for of_text in parts]
        waiting = self.queue.submit(
            [source for of_text in sources for source in of_text], beam_size or self.default_beam_size
        )
        remaining = iter([await future for future in waiting])
        translated = []
        for of_text, encoded in zip(parts, sources, strict=True):
            targets: list[Pieces] = [next(remaining) for _ in encoded]
            translated.append(
                Translated(
                    join(of_text, [self._tokenizer.decode(target) for target in targets]),
                    sum(map(len, encoded)),
                    sum(len(target) + 1 for target in targets),
                )
            )
        return translated


def create_app(service: Service) -> FastAPI:
    """Return the application, which warms up before it is ready."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        running = asyncio.create_task(service.queue.run())
        for beam_size in {1, service.default_beam_size}:
            await service.translate(list(WARM_UP), beam_size)
        yield
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    app = FastAPI(lifespan=lifespan, openapi_url=None)

    @app.post("/v1/translate")
    async def translate(body: TranslateBody) -> JSONResponse:
        texts = [body.text] if isinstance(body.text, str) else body.text
        done = await service.translate(texts, body.beam_size)
        return JSONResponse({"translations": [asdict(translated) for translated in done]})

    @app.get("/health/ready")
    async def ready() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @app.get("/batches")
    async def batches() -> JSONResponse:
        return JSONResponse(asdict(service.queue.counts))

    @app.exception_handler(QueueFull)
    async def refuse(_: object, error: Exception) -> JSONResponse:
        content = {"error": {"code": "queue_full", "message": str(error)}}
        return JSONResponse(content, status_code=429, headers={"Retry-After": "1"})

    return app


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that all these servers share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--checkpoint", required=True, help="folder of the weights and the tokenizer")
    parser.add_argument("--port", type=int, required=True, help="TCP port on 127.0.0.1")
    parser.add_argument("--language", default="en", help="language of the source texts, for splitting sentences")
    parser.add_argument(
        "--default-beam-size", type=int, default=DEFAULT_BEAM_SIZE, help="beam size of requests without one"
    )
    parser.add_argument("--max-batch", type=int, default=32, help="maximum number of sentences per batch")
    parser.add_argument(
        "--window-ms", type=float, default=2.0, help="milliseconds that a batch waits for more sentences"
    )
    parser.add_argument(
        "--max-waiting", type=int, default=None, help="maximum number of waiting sentences; default: unlimited"
    )
    return parser


def add_token_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options of libraries that take these limits."""
    parser.add_argument(
        "--max-batch-tokens", type=int, default=1024, help="maximum number of padded source tokens per engine call"
    )
    parser.add_argument(
        "--target-factor", type=float, default=0.0, help="maximum target tokens per source token; 0: unlimited"
    )


def serve(service: Service, port: int) -> None:
    """Serve until a signal, with uvicorn's default event loop and parser."""
    uvicorn.run(create_app(service), host="127.0.0.1", port=port, access_log=False, log_level="warning")
