"""Blocking client of a Kvasir server."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, Unpack, overload

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
from kvasir_client.options import (
    DocumentOptions,
    EmbeddingOptions,
    GenerationOptions,
    Options,
    ScoreOptions,
)

T = TypeVar("T")

POLL_SECONDS = 0.5


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
        self._max_retries = max_retries

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    @overload
    def translate(
        self, text: str, *, source: str | None = None, target: str | None = None, **options: Unpack[Options]
    ) -> Translation: ...
    @overload
    def translate(
        self, text: Texts, *, source: str | None = None, target: str | None = None, **options: Unpack[Options]
    ) -> list[Translation]: ...
    def translate(
        self,
        text: str | Texts,
        *,
        source: str | None = None,
        target: str | None = None,
        **options: Unpack[Options],
    ) -> Translation | list[Translation]:
        """Translate one text, or a list of texts in one call.

        `source` may be "auto". Languages are optional if the server has one language pair only.
        """
        translations = self.translate_with_details(text, source=source, target=target, **options).translations
        return translations[0] if isinstance(text, str) else translations

    def translate_with_details(
        self,
        text: str | Texts,
        *,
        source: str | None = None,
        target: str | None = None,
        **options: Unpack[Options],
    ) -> TranslationResult:
        """Translate like `translate` and return the model, the pivot language and the seed, too."""
        return self._send(calls.translate(text, source, target, options))

    def stream(
        self,
        text: str | Texts,
        *,
        source: str | None = None,
        target: str | None = None,
        **options: Unpack[Options],
    ) -> Iterator[TextDelta | TranslationResult]:
        """Yield parts of the translations as they become final, and last of all the complete result."""
        yield from self._events(calls.translate(text, source, target, options))

    @overload
    def generate(self, text: str, **options: Unpack[GenerationOptions]) -> Generation: ...
    @overload
    def generate(self, text: Texts, **options: Unpack[GenerationOptions]) -> list[Generation]: ...
    def generate(self, text: str | Texts, **options: Unpack[GenerationOptions]) -> Generation | list[Generation]:
        """Generate a text from one text, or from each of a list, with a model that does not translate."""
        generations = self.generate_with_details(text, **options).generations
        return generations[0] if isinstance(text, str) else generations

    def generate_with_details(self, text: str | Texts, **options: Unpack[GenerationOptions]) -> GenerationResult:
        """Generate like `generate` and return the model and the seed, too."""
        return self._send(calls.generate(text, options))

    def stream_generation(
        self, text: str | Texts, **options: Unpack[GenerationOptions]
    ) -> Iterator[TextDelta | GenerationResult]:
        """Yield parts of the generated texts as they become final, and last of all the complete result."""
        yield from self._events(calls.generate(text, options))

    @overload
    def embed(self, text: str, **options: Unpack[EmbeddingOptions]) -> Embedding: ...
    @overload
    def embed(self, text: Texts, **options: Unpack[EmbeddingOptions]) -> list[Embedding]: ...
    def embed(self, text: str | Texts, **options: Unpack[EmbeddingOptions]) -> Embedding | list[Embedding]:
        """Return the embedding of one text, or of each of a list."""
        embeddings = self._send(calls.embed(text, options))
        return embeddings[0] if isinstance(text, str) else embeddings

    def score(
        self,
        texts: Sequence[str],
        translations: Sequence[str],
        *,
        source: str | None = None,
        target: str | None = None,
        **options: Unpack[ScoreOptions],
    ) -> list[Score]:
        """Return the probability that the model gives to each translation; each text is one sentence."""
        return self._send(calls.score(texts, translations, source, target, options))

    @overload
    def detect(self, text: str) -> list[DetectedLanguage]: ...
    @overload
    def detect(self, text: Texts) -> list[list[DetectedLanguage]]: ...
    def detect(self, text: str | Texts) -> list[DetectedLanguage] | list[list[DetectedLanguage]]:
        """Return the languages that a text, or each of a list, may be in, the most likely first.

        A text without letters has none.
        """
        detections = (self._send(calls.detect(text))).detections
        return detections[0] if isinstance(text, str) else detections

    def models(self) -> Models:
        """Return the models and language pairs of the server."""
        return self._send(calls.models())

    def languages(self, *, name_language: str = "en") -> list[Language]:
        """Return the languages of the server, with their names in `name_language`."""
        return (self._send(calls.languages(name_language))).languages

    def limits(self) -> Limits:
        """Return the largest request that the server accepts, and its defaults."""
        return self._send(calls.limits())

    def submit_document(
        self,
        path: str | Path,
        *,
        source: str | None = None,
        target: str | None = None,
        **options: Unpack[DocumentOptions],
    ) -> Document:
        """Upload a document and return at once; `format`, or the extension of its name, selects the format."""
        call = calls.submit_document(source, target, options)
        return self._send(call, Path(path))

    def document(self, document_id: str) -> Document:
        """Return the state of a document."""
        return self._send(calls.document(document_id))

    def download_document(self, document_id: str, output: str | Path) -> Path:
        """Write a translated document to `output`."""
        with calls.connection_errors(), self._http.stream("GET", f"/v1/documents/{document_id}/content") as response:
            if response.is_error:
                response.read()
                raise calls.error_of(response)
            with calls.complete_file(Path(output)) as file:
                for chunk in response.iter_bytes():
                    file.write(chunk)
        return Path(output)

    def delete_document(self, document_id: str) -> None:
        """Stop the translation of a document and delete it on the server."""
        self._send(calls.delete_document(document_id))

    def translate_document(
        self,
        path: str | Path,
        *,
        source: str | None = None,
        target: str | None = None,
        output: str | Path | None = None,
        **options: Unpack[DocumentOptions],
    ) -> Path:
        """Translate a document, write it and return where; by default beside the original (`letter.de.docx`).

        The document is deleted on the server, also after an error. Raises `DocumentFailed` if it cannot be translated.
        """
        document = self.submit_document(path, source=source, target=target, **options)
        try:
            while not calls.is_finished(document):
                time.sleep(POLL_SECONDS)
                document = self.document(document.id)
            where = calls.output_path(Path(path), document, None if output is None else Path(output))
            return self.download_document(document.id, where)
        finally:
            with suppress(KvasirError):  # the server deletes it later, and this error must not hide the first one
                self.delete_document(document.id)

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

    def _send(self, call: Call[T], file: Path | None = None) -> T:
        attempt = 0
        while True:
            with calls.connection_errors():
                response = self._request(call, file)
            if response.is_success:
                return call.read(response.json() if response.content else {})
            time.sleep(calls.retry_delay(calls.error_of(response), attempt, self._max_retries))
            attempt += 1

    def _request(self, call: Call[T], file: Path | None) -> httpx2.Response:
        if file is None:
            return self._http.request(call.method, call.path, json=call.json, params=call.query)
        with file.open("rb") as content:
            return self._http.request(
                call.method, call.path, data=dict(call.form or {}), files={"file": (file.name, content)}
            )
