"""MCP server: translation as tools for language models, over a client of a Kvasir server. Needs the extra `mcp`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import httpx2
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from kvasir_client import calls
from kvasir_client.client import POLL_SECONDS, AsyncClient
from kvasir_client.errors import KvasirError
from kvasir_client.options import DocumentOptions, Options

_INSTRUCTIONS = (
    "Translates with models on this machine; no text leaves it. Call `languages` for the languages that are available."
)
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)

_TIMEOUT_SECONDS = 600.0

_Message = MutableMapping[str, Any]
Application = Callable[  # of ASGI
    [_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]], Awaitable[None]
]

Texts = Annotated[list[str], Field(description="texts of any length; each has its translation, in the same order")]
Source = Annotated[str, Field(description="language of the input, such as en; auto detects it")]
Target = Annotated[
    str | None, Field(description="language to translate into, such as de; optional if there is only one")
]
Glossary = Annotated[
    dict[str, str | list[str]] | None, Field(description="terms, each with its translation or a list of possible ones")
]


class TranslatedText(BaseModel):
    """Translation of one text."""

    text: str
    detected_language: str | None = Field(description="language of the text, if it was detected")
    translated: bool = Field(
        description="false if the text is returned unchanged: it is in the target language already"
    )


class Translations(BaseModel):
    """Translations in the order of the texts."""

    translations: list[TranslatedText]
    model: str | None = Field(description="names of the models that translated")


class TranslatedDocument(BaseModel):
    """A translated document on this machine."""

    path: str


class KeptTranslation(BaseModel):
    """A translation that was stored."""

    memory_id: str


class Candidate(BaseModel):
    """A language that a text may be in."""

    language: str
    confidence: float = Field(description="probability, 0 to 1")


class Detections(BaseModel):
    """Candidates of each text, the most likely first; none for a text without letters."""

    detections: list[list[Candidate]]


class SourceLanguage(BaseModel):
    """A language, and the languages into which texts in it can be translated."""

    language: str
    name: str
    targets: list[str]


class SourceLanguages(BaseModel):
    """All languages that can be translated."""

    languages: list[SourceLanguage]


class TranslationTools:
    """Tools of the server. Their signatures and first lines are what a language model reads."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def translate(
        self,
        texts: Texts,
        target: Target = None,
        source: Source = "auto",
        format: Annotated[  # noqa: A002 - the name of the field
            Literal["text", "html", "xml"], Field(description="html and xml keep all tags")
        ] = "text",
        formal: Annotated[bool | None, Field(description="true for formal address, false for informal address")] = None,
        glossary: Glossary = None,
        memory_id: Annotated[str | None, Field(description="id of a translation memory to use")] = None,
    ) -> Translations:
        """Translate texts. Markup, numbers, placeholders and line breaks are preserved."""
        options: Options = {"format": format}
        if formal is not None:
            options["formal"] = formal
        if glossary:
            options["glossary"] = glossary
        if memory_id:
            options["memory_id"] = memory_id
        with _tool_errors():
            result = await self._client.translate_with_details(texts, source=source, target=target, **options)
        return Translations(
            translations=[
                TranslatedText(
                    text=each.text,
                    detected_language=None if each.detected_language is None else each.detected_language.language,
                    translated=each.translated is not False,
                )
                for each in result.translations
            ],
            model=result.model,
        )

    async def translate_document(
        self,
        path: Annotated[str, Field(description="path of the document on this machine")],
        context: Context,
        target: Target = None,
        source: Source = "auto",
        output: Annotated[
            str | None, Field(description="path for the translation; by default next to the document: letter.de.docx")
        ] = None,
        format: Annotated[  # noqa: A002 - the name of the field
            str | None, Field(description="format, such as srt; by default the extension of the path")
        ] = None,
    ) -> TranslatedDocument:
        """Translate a document (.docx, .pptx, .xlsx, .odt, .pdf, .epub, .html, .srt, .po, .csv, .txt and more).

        Layout and formatting are preserved. An existing file is never replaced.
        """
        options: DocumentOptions = {} if format is None else {"format": format}
        given, wanted = _checked_paths(path, output)
        with _tool_errors():
            document = await self._client.submit_document(given, source=source, target=target, **options)
            try:
                where = calls.output_path(given, document, wanted)
                if where.exists():
                    raise ToolError(f"{where} exists already; set `output` to another path")
                while not calls.is_finished(document):
                    await context.report_progress(document.progress, 1.0)
                    await asyncio.sleep(POLL_SECONDS)
                    document = await self._client.document(document.id)
                written = await self._client.download_document(document.id, where)
            finally:
                with suppress(KvasirError):  # the server deletes it later, and this error must not hide the first one
                    await self._client.delete_document(document.id)
        return TranslatedDocument(path=str(written.absolute()))

    async def detect(self, texts: Texts) -> Detections:
        """Detect the language of each text, without translating it."""
        with _tool_errors():
            found = await self._client.detect(texts)
        return Detections(
            detections=[
                [Candidate(language=each.language, confidence=each.confidence) for each in candidates]
                for candidates in found
            ]
        )

    async def keep_translation(
        self,
        memory_id: Annotated[str, Field(description="id of a translation memory of the server")],
        text: Annotated[str, Field(description="one sentence")],
        translation: Annotated[str, Field(description="the translation that a person has approved")],
        target: Annotated[str, Field(description="language of the translation, such as de")],
    ) -> KeptTranslation:
        """Keep an approved translation: it is the answer for this sentence from then on. Ask the person before."""
        with _tool_errors():
            await self._client.keep_translation(memory_id, text, translation, target=target)
        return KeptTranslation(memory_id=memory_id)

    async def languages(self) -> SourceLanguages:
        """List the languages that can be translated, each with its target languages."""
        with _tool_errors():
            names = {each.language: each.name for each in await self._client.languages()}
            pairs = (await self._client.models()).pairs
        targets: dict[str, list[str]] = {}
        for pair in pairs:
            targets.setdefault(pair.source, []).append(pair.target)
        return SourceLanguages(
            languages=[
                SourceLanguage(language=source, name=names.get(source, source), targets=sorted(into))
                for source, into in sorted(targets.items())
            ]
        )


def _checked_paths(path: str, output: str | None) -> tuple[Path, Path | None]:
    """Return the paths of a document and of its translation, None if the server names it. Raises `ToolError`."""
    given = Path(path).expanduser()
    wanted = None if output is None else Path(output).expanduser()
    if not given.is_file():
        raise ToolError(f"{given} does not exist, or is not a file")
    if wanted is not None and not wanted.parent.is_dir():
        raise ToolError(f"the folder {wanted.parent} does not exist")
    return given, wanted


@contextmanager
def _tool_errors() -> Iterator[None]:
    """Report errors of the server and of files to the language model; others are defects."""
    try:
        yield
    except (KvasirError, OSError) as error:
        raise ToolError(str(error)) from error


def create_server(client: AsyncClient, version: str = "") -> MCPServer:
    """Return an MCP server whose tools send their requests with `client`; it reports `version` as its own."""
    tools = TranslationTools(client)
    server: MCPServer = MCPServer("kvasir", instructions=_INSTRUCTIONS, version=version, log_level="WARNING")
    for reading in (tools.translate, tools.detect, tools.languages):
        server.add_tool(reading, annotations=_READS)
    for writing in (tools.translate_document, tools.keep_translation):
        server.add_tool(writing, annotations=_WRITES)
    return server


def remote_client(url: str, api_key: str | None) -> AsyncClient:
    """Return a client of a running server that waits long enough for large texts."""
    return AsyncClient(url, api_key=api_key, timeout=_TIMEOUT_SECONDS)


def serve_tools(client: AbstractAsyncContextManager[AsyncClient], version: str) -> None:
    """Serve on standard input and output until the input ends."""

    async def run() -> None:
        async with client as opened:
            await create_server(opened, version).run_stdio_async()

    asyncio.run(run())


def serve_tools_of(application: AbstractAsyncContextManager[Application], version: str) -> None:
    """Serve the tools of a Kvasir application inside this process, without a port."""
    serve_tools(_local_client(application), version)


@asynccontextmanager
async def _local_client(application: AbstractAsyncContextManager[Application]) -> AsyncIterator[AsyncClient]:
    async with application as app, AsyncClient(transport=httpx2.ASGITransport(app)) as client:
        yield client
