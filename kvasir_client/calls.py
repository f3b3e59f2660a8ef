"""Calls to the native API of a Kvasir server: what to send, and how to read the response. No input or output."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar
from urllib.parse import quote

import httpx2

from kvasir_client.answers import (
    Detections,
    Document,
    Embeddings,
    GenerationResult,
    Languages,
    Limits,
    Models,
    Pair,
    Scores,
    TextDelta,
    TranslationResult,
    parse,
)
from kvasir_client.errors import ConnectionFailed, DocumentFailed, Overloaded, ResponseError, TimedOut
from kvasir_client.options import (
    DocumentOptions,
    EmbeddingOptions,
    GenerationOptions,
    Options,
    ScoreOptions,
)

T = TypeVar("T")

# Not every sequence of strings: a str is one too.
Texts = list[str] | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One HTTP request. `read` turns the decoded JSON of a success into the value that the call returns."""

    method: str
    path: str
    read: Callable[[Mapping[str, object]], T]
    json: Mapping[str, object] | None = None
    form: Mapping[str, str] | None = None
    query: Mapping[str, str] | None = None


def translate(text: str | Texts, source: str | None, target: str | None, options: Options) -> Call[TranslationResult]:
    """Translate texts; a str is one text."""
    return _post("/v1/translate", TranslationResult, {"text": text, "source": source, "target": target, **options})


def generate(text: str | Texts, options: GenerationOptions) -> Call[GenerationResult]:
    """Generate texts with a model that does not translate; a str is one text."""
    return _post("/v1/generate", GenerationResult, {"text": text, **options})


def embed(text: str | Texts, options: EmbeddingOptions) -> Call[Embeddings]:
    """Embed texts; a str is one text."""
    return _post("/v1/embed", Embeddings, {"text": text, **options})


def detect(text: str | Texts) -> Call[Detections]:
    """Detect the languages of texts; a str is one text."""
    return _post("/v1/detect", Detections, {"text": text})


def score(
    texts: Sequence[str], translations: Sequence[str], source: str | None, target: str | None, options: ScoreOptions
) -> Call[Scores]:
    """Score translations, one for each text."""
    languages = {"source": source, "target": target}
    return _post("/v1/score", Scores, {"text": list(texts), "translation": list(translations), **languages, **options})


def _post(path: str, kind: type[T], body: Mapping[str, object]) -> Call[T]:
    return Call("POST", path, lambda data: parse(kind, data), json=_without_none(body))


def models() -> Call[Models]:
    """List models and language pairs."""
    return Call("GET", "/v1/models", read_models)


def read_models(data: Mapping[str, object]) -> Models:
    """Read models and pairs. A server with many pairs lists only those that do not follow from a model's languages."""
    models = parse(Models, data)
    if data.get("pairs_complete", True):
        return models
    pairs: dict[tuple[str, str], Pair] = {}
    for model in models.models:
        is_multilingual = len(model.source_languages) > 1 and len(model.target_languages) > 1
        for source in model.source_languages:
            for target in model.target_languages:
                if source != target or not is_multilingual:
                    pairs.setdefault((source, target), Pair(source, target, [model.name]))
    for pair in models.pairs:
        pairs.setdefault((pair.source, pair.target), pair)
    return Models(models.models, list(pairs.values()))


def languages(name_language: str) -> Call[Languages]:
    """List languages with their names."""
    return Call("GET", "/v1/languages", lambda data: parse(Languages, data), query={"in": name_language})


def keep_translation(memory_id: str, text: str, translation: str, target: str) -> Call[None]:
    """Store a translation in a translation memory."""
    segment = {"source_text": text, "targets": [{"target_language": target, "target_text": translation}]}
    path = f"/v3/translation_memories/{quote(memory_id, safe='')}/segments"
    return Call("PUT", path, lambda _: None, json={"segments": [segment]})


def limits() -> Call[Limits]:
    """Read the limits of a request."""
    return Call("GET", "/v1/limits", lambda data: parse(Limits, data))


def submit_document(source: str | None, target: str | None, options: DocumentOptions) -> Call[Document]:
    """Submit a document; the client adds the file."""
    fields = {"source": source, "target": target, **options}
    form = {name: str(value) for name, value in _without_none(fields).items()}
    return Call("POST", "/v1/documents", lambda data: parse(Document, data), form=form)


def document(document_id: str) -> Call[Document]:
    """Read the state of a document."""
    return Call("GET", f"/v1/documents/{document_id}", lambda data: parse(Document, data))


def delete_document(document_id: str) -> Call[None]:
    """Stop the translation of a document and delete it."""
    return Call("DELETE", f"/v1/documents/{document_id}", lambda data: None)


def output_path(given: Path, document: Document, output: Path | None) -> Path:
    """Return where a translated document goes: `output`, or next to the original under the server's name for it."""
    return given.with_name(Path(document.name).name) if output is None else output


def is_finished(document: Document) -> bool:
    """Return whether a document is translated. Raises `DocumentFailed` if it never will be."""
    if document.status == "error":
        code, message = (document.error.code, document.error.message) if document.error else ("unknown", "")
        raise DocumentFailed(code, message)
    return document.status == "done"


def error_of(response: httpx2.Response) -> ResponseError:
    """Return the exception for an error response whose body was read."""
    try:
        error = response.json()["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError):
        code, message = "", response.text[:200] or response.reason_phrase
    kind = Overloaded if response.status_code in {429, 503} else ResponseError
    found = kind(response.status_code, code, message, response.headers.get("x-request-id"))
    if isinstance(found, Overloaded):
        found.retry_after_seconds = _seconds(response.headers.get("retry-after"))
    return found


def read_event(event: httpx2.ServerSentEvent, call: Call[T]) -> TextDelta | T:
    """Read a server-sent event of a streamed answer to `call`. Raises `ResponseError` for an `error` event."""
    data = event.json()
    assert isinstance(data, dict)
    if event.event == "error":
        raise ResponseError(200, str(data["error"]["code"]), str(data["error"]["message"]))
    return call.read(data) if event.event == "done" else parse(TextDelta, data)


def retry_delay(error: ResponseError, attempt: int, max_retries: int) -> float:
    """Return the seconds to wait before the next attempt: the server's `Retry-After`, else 0.5, 1, 2, ... up to 8.

    Raises `error` if it is not one of overload, or if this was the last attempt.
    """
    if not isinstance(error, Overloaded) or attempt >= max_retries:
        raise error
    return min(8.0, 0.5 * 2.0**attempt) if error.retry_after_seconds is None else error.retry_after_seconds


@contextmanager
def connection_errors() -> Iterator[None]:
    """Replace the exceptions of the HTTP library by those of this package."""
    try:
        yield
    except httpx2.TimeoutException as error:
        raise TimedOut(str(error) or "the server did not respond in time") from error
    except httpx2.TransportError as error:
        raise ConnectionFailed(str(error)) from error


@contextmanager
def complete_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that appears at `path` once it is complete; an interrupted one is removed."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _seconds(header: str | None) -> float | None:
    try:
        return None if header is None else float(header)
    except ValueError:  # a date, which Kvasir does not send
        return None


def _without_none(body: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in body.items() if value is not None}
