"""Clients of a Kvasir server: `Client` blocks, `AsyncClient` is for asyncio. Both run the methods of `Endpoints`."""

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeAlias, TypeVar, Unpack, get_args, overload

import httpx2

from kvasir_client import calls
from kvasir_client.answers import (
    DetectedLanguage,
    Document,
    Embedding,
    Generation,
    GenerationResult,
    Language,
    Limits,
    Models,
    Score,
    TextDelta,
    Translation,
    TranslationResult,
)
from kvasir_client.calls import Call, Texts
from kvasir_client.errors import ConnectionFailed, KvasirError
from kvasir_client.options import DocumentOptions, EmbeddingOptions, GenerationOptions, Options, ScoreOptions

T = TypeVar("T")
P = ParamSpec("P")

POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Send(Generic[T]):
    """Step of a method: a request, with a file if there is one. Its outcome is the response."""

    call: Call[T]
    file: Path | None = None

    @contextmanager
    def request(self) -> Iterator[dict[str, Any]]:
        """Yield the arguments of the request; the file is open inside the context."""
        call, request = self.call, {"method": self.call.method, "url": self.call.path}
        if self.file is None:
            yield request | {"json": call.json, "params": call.query}
        else:
            with self.file.open("rb") as content:
                yield request | {"data": dict(call.form or {}), "files": {"file": (self.file.name, content)}}


@dataclass(frozen=True, slots=True)
class Wait:
    """Step of a method: a pause."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Download:
    """Step of a method: the body of a response written to a file."""

    path: str
    output: Path


Step: TypeAlias = Send[Any] | Wait | Download
Steps: TypeAlias = Generator[Step, Any, T]
"""A method in progress: it yields what a client has to do, receives the outcome, and returns its result."""


class Endpoints:
    """The methods of both clients but streams, without input or output."""

    def __init__(self, max_retries: int) -> None:
        self._max_retries = max_retries

    @overload
    def translate(
        self, text: str, *, source: str | None = None, target: str | None = None, **options: Unpack[Options]
    ) -> Steps[Translation]: ...
    @overload
    def translate(
        self, text: Texts, *, source: str | None = None, target: str | None = None, **options: Unpack[Options]
    ) -> Steps[list[Translation]]: ...
    def translate(
        self,
        text: str | Texts,
        *,
        source: str | None = None,
        target: str | None = None,
        **options: Unpack[Options],
    ) -> Steps[Translation | list[Translation]]:
        """Translate one text, or a list of texts in one call.

        `source` may be "auto". Languages are optional if the server has one language pair only.
        """
        result = yield from self.translate_with_details(text, source=source, target=target, **options)
        return result.translations[0] if isinstance(text, str) else result.translations

    def translate_with_details(
        self, text: str | Texts, *, source: str | None = None, target: str | None = None, **options: Unpack[Options]
    ) -> Steps[TranslationResult]:
        """Translate like `translate` and return the model, the pivot language and the seed, too."""
        return self._send(calls.translate(text, source, target, options))

    @overload
    def generate(self, text: str, **options: Unpack[GenerationOptions]) -> Steps[Generation]: ...
    @overload
    def generate(self, text: Texts, **options: Unpack[GenerationOptions]) -> Steps[list[Generation]]: ...
    def generate(self, text: str | Texts, **options: Unpack[GenerationOptions]) -> Steps[Generation | list[Generation]]:
        """Generate a text from one text, or from each of a list, with a model that does not translate."""
        result = yield from self.generate_with_details(text, **options)
        return result.generations[0] if isinstance(text, str) else result.generations

    def generate_with_details(self, text: str | Texts, **options: Unpack[GenerationOptions]) -> Steps[GenerationResult]:
        """Generate like `generate` and return the model and the seed, too."""
        return self._send(calls.generate(text, options))

    @overload
    def embed(self, text: str, **options: Unpack[EmbeddingOptions]) -> Steps[Embedding]: ...
    @overload
    def embed(self, text: Texts, **options: Unpack[EmbeddingOptions]) -> Steps[list[Embedding]]: ...
    def embed(self, text: str | Texts, **options: Unpack[EmbeddingOptions]) -> Steps[Embedding | list[Embedding]]:
        """Return the embedding of one text, or of each of a list."""
        embeddings = (yield from self._send(calls.embed(text, options))).embeddings
        return embeddings[0] if isinstance(text, str) else embeddings

    def score(
        self,
        texts: Sequence[str],
        translations: Sequence[str],
        *,
        source: str | None = None,
        target: str | None = None,
        **options: Unpack[ScoreOptions],
    ) -> Steps[list[Score]]:
        """Return the probability that the model gives to each translation; each text is one sentence."""
        return (yield from self._send(calls.score(texts, translations, source, target, options))).scores

    @overload
    def detect(self, text: str) -> Steps[list[DetectedLanguage]]: ...
    @overload
    def detect(self, text: Texts) -> Steps[list[list[DetectedLanguage]]]: ...
    def detect(self, text: str | Texts) -> Steps[list[DetectedLanguage] | list[list[DetectedLanguage]]]:
        """Return the languages that a text, or each of a list, may be in, the most likely first.

        A text without letters has none.
        """
        detections = (yield from self._send(calls.detect(text))).detections
        return detections[0] if isinstance(text, str) else detections

    def models(self) -> Steps[Models]:
        """Return the models and language pairs of the server."""
        return self._send(calls.models())

    def languages(self, *, name_language: str = "en") -> Steps[list[Language]]:
        """Return the languages of the server, with their names in `name_language`."""
        return (yield from self._send(calls.languages(name_language))).languages

    def keep_translation(self, memory_id: str, text: str, translation: str, *, target: str) -> Steps[None]:
        """Store a translation in a translation memory: it is the answer for this text from then on."""
        return self._send(calls.keep_translation(memory_id, text, translation, target))

    def limits(self) -> Steps[Limits]:
        """Return the largest request that the server accepts, and its defaults."""
        return self._send(calls.limits())

    def submit_document(
        self,
        path: str | Path,
        *,
        source: str | None = None,
        target: str | None = None,
        **options: Unpack[DocumentOptions],
    ) -> Steps[Document]:
        """Upload a document and return at once; `format`, or the extension of its name, selects the format."""
        return self._send(calls.submit_document(source, target, options), Path(path))

    def document(self, document_id: str) -> Steps[Document]:
        """Return the state of a document."""
        return self._send(calls.document(document_id))

    def download_document(self, document_id: str, output: str | Path) -> Steps[Path]:
        """Write a translated document to `output`."""
        yield Download(f"/v1/documents/{document_id}/content", Path(output))
        return Path(output)

    def delete_document(self, document_id: str) -> Steps[None]:
        """Stop the translation of a document and delete it on the server."""
        return self._send(calls.delete_document(document_id))

    def translate_document(
        self,
        path: str | Path,
        *,
        source: str | None = None,
        target: str | None = None,
        output: str | Path | None = None,
        **options: Unpack[DocumentOptions],
    ) -> Steps[Path]:
        """Translate a document, write it and return where; by default next to the original (`letter.de.docx`).

        The document is deleted on the server, also after an error. Raises `DocumentFailed` if it cannot be translated.
        """
        document = yield from self.submit_document(path, source=source, target=target, **options)
        try:
            while not calls.is_finished(document):
                yield Wait(POLL_SECONDS)
                document = yield from self.document(document.id)
            where = calls.output_path(Path(path), document, None if output is None else Path(output))
            return (yield from self.download_document(document.id, where))
        finally:
            with suppress(KvasirError):  # the server deletes it later, and this error must not hide the first one
                yield from self.delete_document(document.id)

    def _send(self, call: Call[T], file: Path | None = None) -> Steps[T]:
        attempt = 0
        while True:
            response: httpx2.Response = yield Send(call, file)
            if response.is_success:
                return call.read(response.json() if response.content else {})
            yield Wait(calls.retry_delay(calls.error_of(response), attempt, self._max_retries))
            attempt += 1


def _with_signature(run: Callable[P, object], method: Callable[..., object]) -> None:
    """Let `help` show what a method returns, not its steps."""
    signature = inspect.signature(method)
    *_, returned = get_args(signature.return_annotation)
    run.__signature__ = signature.replace(return_annotation=returned)  # type: ignore[attr-defined]


def _blocking(
    method: Callable[Concatenate[Endpoints, P], Steps[T]],
) -> Callable[Concatenate["Client", P], T]:
    @wraps(method)
    def run(self: "Client", /, *arguments: P.args, **options: P.kwargs) -> T:
        return self._run(method(self._endpoints, *arguments, **options))

    _with_signature(run, method)
    return run


def _awaited(
    method: Callable[Concatenate[Endpoints, P], Steps[T]],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, T]]:
    @wraps(method)
    async def run(self: "AsyncClient", /, *arguments: P.args, **options: P.kwargs) -> T:
        return await self._run(method(self._endpoints, *arguments, **options))

    _with_signature(run, method)
    return run


class Client:
    """Blocking client; thread-safe, keeps connections open. Close it, or use it as a context manager.

    `timeout` is in seconds, for each response. Requests that the server rejects for overload are sent again up to
    `max_retries` times, after the time that the server names. `api_key` is sent as a bearer token.

    Every method raises `ConnectionFailed`, `TimedOut`, or `ResponseError` with the server's code and message.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        api_key: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._http = httpx2.Client(base_url=url, headers=headers, timeout=timeout, transport=transport)
        self._endpoints = Endpoints(max_retries)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    translate = _blocking(Endpoints.translate)
    translate_with_details = _blocking(Endpoints.translate_with_details)
    generate = _blocking(Endpoints.generate)
    generate_with_details = _blocking(Endpoints.generate_with_details)
    embed = _blocking(Endpoints.embed)
    score = _blocking(Endpoints.score)
    detect = _blocking(Endpoints.detect)
    models = _blocking(Endpoints.models)
    languages = _blocking(Endpoints.languages)
    keep_translation = _blocking(Endpoints.keep_translation)
    limits = _blocking(Endpoints.limits)
    submit_document = _blocking(Endpoints.submit_document)
    document = _blocking(Endpoints.document)
    download_document = _blocking(Endpoints.download_document)
    delete_document = _blocking(Endpoints.delete_document)
    translate_document = _blocking(Endpoints.translate_document)

    def stream(
        self, text: str | Texts, *, source: str | None = None, target: str | None = None, **options: Unpack[Options]
    ) -> Iterator[TextDelta | TranslationResult]:
        """Yield parts of the translations as they become final, and last of all the complete result."""
        return self._events(calls.translate(text, source, target, options))

    def stream_generation(
        self, text: str | Texts, **options: Unpack[GenerationOptions]
    ) -> Iterator[TextDelta | GenerationResult]:
        """Yield parts of the generated texts as they become final, and last of all the complete result."""
        return self._events(calls.generate(text, options))

    def _run(self, steps: Steps[T]) -> T:
        outcome: httpx2.Response | None = None
        error: BaseException | None = None
        while True:
            try:
                step = steps.send(outcome) if error is None else steps.throw(error)
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                outcome, error = self._outcome(step), None
            except BaseException as raised:  # noqa: BLE001 - a signal, too: the method deletes its document
                error = raised

    def _outcome(self, step: Step) -> httpx2.Response | None:
        if isinstance(step, Wait):
            time.sleep(step.seconds)
            return None
        with calls.connection_errors():
            if isinstance(step, Send):
                with step.request() as request:
                    return self._http.request(**request)
            with self._http.stream("GET", step.path) as response:
                if response.is_error:
                    response.read()
                    raise calls.error_of(response)
                with calls.complete_file(step.output) as file:
                    for chunk in response.iter_bytes():
                        file.write(chunk)
        return None

    def _events(self, call: Call[T]) -> Iterator[TextDelta | T]:
        request = self._http.stream(call.method, call.path, json={**(call.json or {}), "stream": True})
        with calls.connection_errors(), request as response:
            if response.is_error:
                response.read()
                raise calls.error_of(response)
            for event in httpx2.EventSource(response):
                part = calls.read_event(event, call)
                yield part
                if not isinstance(part, TextDelta):
                    return
        raise ConnectionFailed("the stream ended before its last event")


class AsyncClient:
    """Asyncio client; keeps connections open. Close it, or use it as an asynchronous context manager.

    Its methods are those of `Client` as coroutines; `stream` and `stream_generation` are asynchronous iterators.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        api_key: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._http = httpx2.AsyncClient(base_url=url, headers=headers, timeout=timeout, transport=transport)
        self._endpoints = Endpoints(max_retries)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    translate = _awaited(Endpoints.translate)
    translate_with_details = _awaited(Endpoints.translate_with_details)
    generate = _awaited(Endpoints.generate)
    generate_with_details = _awaited(Endpoints.generate_with_details)
    embed = _awaited(Endpoints.embed)
    score = _awaited(Endpoints.score)
    detect = _awaited(Endpoints.detect)
    models = _awaited(Endpoints.models)
    languages = _awaited(Endpoints.languages)
    keep_translation = _awaited(Endpoints.keep_translation)
    limits = _awaited(Endpoints.limits)
    submit_document = _awaited(Endpoints.submit_document)
    document = _awaited(Endpoints.document)
    download_document = _awaited(Endpoints.download_document)
    delete_document = _awaited(Endpoints.delete_document)
    translate_document = _awaited(Endpoints.translate_document)

    def stream(
        self, text: str | Texts, *, source: str | None = None, target: str | None = None, **options: Unpack[Options]
    ) -> AsyncIterator[TextDelta | TranslationResult]:
        """Yield parts of the translations as they become final, and last of all the complete result."""
        return self._events(calls.translate(text, source, target, options))

    def stream_generation(
        self, text: str | Texts, **options: Unpack[GenerationOptions]
    ) -> AsyncIterator[TextDelta | GenerationResult]:
        """Yield parts of the generated texts as they become final, and last of all the complete result."""
        return self._events(calls.generate(text, options))

    async def _run(self, steps: Steps[T]) -> T:
        outcome: httpx2.Response | None = None
        error: BaseException | None = None
        while True:
            try:
                step = steps.send(outcome) if error is None else steps.throw(error)
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                outcome, error = await self._outcome(step), None
            except BaseException as raised:  # noqa: BLE001 - a cancellation, too
                error = raised

    async def _outcome(self, step: Step) -> httpx2.Response | None:
        if isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
            return None
        with calls.connection_errors():
            if isinstance(step, Send):
                with step.request() as request:
                    return await self._http.request(**request)
            async with self._http.stream("GET", step.path) as response:
                if response.is_error:
                    await response.aread()
                    raise calls.error_of(response)
                with calls.complete_file(step.output) as file:
                    async for chunk in response.aiter_bytes():
                        file.write(chunk)
        return None

    async def _events(self, call: Call[T]) -> AsyncIterator[TextDelta | T]:
        request = self._http.stream(call.method, call.path, json={**(call.json or {}), "stream": True})
        with calls.connection_errors():
            async with request as response:
                if response.is_error:
                    await response.aread()
                    raise calls.error_of(response)
                async for event in httpx2.EventSource(response):
                    part = calls.read_event(event, call)
                    yield part
                    if not isinstance(part, TextDelta):
                        return
        raise ConnectionFailed("the stream ended before its last event")
