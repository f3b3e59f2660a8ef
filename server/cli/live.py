"""The command line of `kvasir live`: growing standard input, committed text on standard output."""

import asyncio
import codecs
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from server.cli.command import ModelFolder, SourceLanguage, TargetLanguage, chosen_bundles
from server.interface.decoding_options import MAX_BEAM_SIZE
from server.interface.errors import UnsupportedPair
from server.live.policies import DEFAULT_POLICY, PolicyName
from server.live.session import DEFAULT_FRAME, Input, LiveOptions, LiveSession, committed_text
from server.operations.defaults import DEFAULT_MODEL
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.router import Router
from server.workers.stepped_engine import SteppedEngine

_MAX_ROWS, _MAX_ENCODER_TOKENS = 64, 512
_READ_BYTES = 4096  # so that a long file is translated in parts, and its first sentences are not awaited
_IDLE_SECONDS = 0.005  # between looks for work, while no text arrives


def live(
    model: ModelFolder = DEFAULT_MODEL,
    source: SourceLanguage = None,
    target: TargetLanguage = None,
    policy: Annotated[PolicyName, typer.Option(help="What decides that text is committed.")] = DEFAULT_POLICY,
    frame: Annotated[int, typer.Option(min=0, max=50, help="Words that are awaited.")] = DEFAULT_FRAME,
    beam_size: Annotated[int, typer.Option(min=1, max=MAX_BEAM_SIZE, help="Hypotheses that the search keeps.")] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON object for each update, with its draft.")
    ] = False,
) -> None:
    """Translate standard input while it grows, and write text that will not change."""
    bundles = chosen_bundles(model, source, target)
    if len(bundles) > 1:
        raise UnsupportedPair("live translation needs one model for these languages; the models need a pivot language")
    engine = SteppedEngine.open(bundles[0], _MAX_ROWS, _MAX_ENCODER_TOKENS)
    pipeline = Pipeline(engine, TranslationLimits())
    route = Router([pipeline]).find(source, target)
    asyncio.run(_run(engine, pipeline, LiveOptions(route.source, route.target, policy, frame, beam_size), as_json))


async def _run(engine: SteppedEngine, pipeline: Pipeline, options: LiveOptions, as_json: bool) -> None:
    @contextmanager
    def find() -> Iterator[Pipeline]:
        yield pipeline

    session = LiveSession(options, find, time.monotonic)
    loop = asyncio.get_running_loop()

    async def send(text: str) -> None:
        while not (session.is_idle or session.has_ended):  # noqa: ASYNC110 - what comes meanwhile stays in the pipe
            await asyncio.sleep(_IDLE_SECONDS)
        if not session.has_ended:
            session.send(Input(text))

    def read() -> None:
        _read(lambda text: asyncio.run_coroutine_threadsafe(send(text), loop).result())
        loop.call_soon_threadsafe(session.end, "final")

    threading.Thread(target=read, daemon=True).start()
    running = asyncio.create_task(session.run())
    writing = asyncio.create_task(_write(session, as_json))
    while not writing.done():
        if engine.has_work:
            engine.step()
        await asyncio.sleep(0 if engine.has_work else _IDLE_SECONDS)
    await asyncio.gather(running, writing)


def _read(take: Callable[[str], object]) -> None:
    """Pass on text as soon as it comes."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while data := os.read(sys.stdin.fileno(), _READ_BYTES):
        if text := decoder.decode(data):
            take(text)


async def _write(session: LiveSession, as_json: bool) -> None:
    async for _, event in session.events():
        if as_json:
            typer.echo(json.dumps(event, ensure_ascii=False))
        elif "error" in event:
            raise SystemExit(f"kvasir live: {event['error']}")
        else:
            typer.echo(committed_text(event), nl=False)
    if not as_json:
        typer.echo()
