"""The tools of `kvasir mcp`, called with the client of the `mcp` package."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from httpx2 import ASGITransport
from mcp import Client as McpClient
from mcp import StdioServerParameters
from mcp_types import CallToolResult, TextContent

from kvasir_client import AsyncClient
from kvasir_client.mcp_server import create_server
from server.cli.local_app import local_app
from tests.end_to_end.servers import ROOT, Served

Session = Callable[[McpClient], Awaitable[None]]


def _with_server(served: Served, session: Session) -> None:
    """Run a session against tools whose requests go to a running server."""

    async def run() -> None:
        async with AsyncClient(served.url) as client, McpClient(create_server(client)) as tools:
            await session(tools)

    asyncio.run(run())


def _content(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result
    content: dict[str, Any] | None = result.structured_content
    assert content is not None
    return content


def _error(result: CallToolResult) -> str:
    assert result.is_error
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


def test_every_tool_describes_its_parameters(served: Served) -> None:
    async def session(tools: McpClient) -> None:
        listed = {tool.name: tool for tool in (await tools.list_tools()).tools}
        assert listed.keys() == {"translate", "translate_document", "keep_translation", "detect", "languages"}
        for tool in listed.values():
            assert tool.description
            assert tool.output_schema
            assert all(each.get("description") for each in tool.input_schema["properties"].values())
        assert listed["translate"].input_schema["required"] == ["texts"]
        changes = [name for name, tool in listed.items() if tool.annotations and not tool.annotations.read_only_hint]
        assert changes == ["translate_document", "keep_translation"]

    _with_server(served, session)


def test_texts_are_translated_with_options(served: Served) -> None:
    async def session(tools: McpClient) -> None:
        texts = ["Good morning.", "<b>Thank you.</b>", "station"]
        arguments = {"texts": texts, "target": "de", "format": "html", "glossary": {"station": "Halt"}}
        answer = _content(await tools.call_tool("translate", arguments))
        assert [each["text"] for each in answer["translations"]] == ["Guten Morgen.", "<b>Vielen Dank.</b>", "Halt"]
        assert [each["detected_language"] for each in answer["translations"]] == ["en"] * 3
        assert answer["model"] == "en-de"
        formal = _content(await tools.call_tool("translate", {"texts": ["How are you?"], "formal": True}))
        assert "Ihnen" in formal["translations"][0]["text"]

    _with_server(served, session)


def test_errors_of_the_server_reach_the_language_model(served: Served) -> None:
    async def session(tools: McpClient) -> None:
        error = _error(await tools.call_tool("translate", {"texts": ["Tea."], "target": "xx"}))
        assert "no model translates to xx; available: de" in error
        assert "texts" in _error(await tools.call_tool("translate", {}))

    _with_server(served, session)


def test_a_document_is_written_and_no_file_is_replaced(served: Served, tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Good morning.\n", encoding="utf-8")

    async def session(tools: McpClient) -> None:
        arguments = {"path": str(letter), "target": "de"}
        written = _content(await tools.call_tool("translate_document", arguments))
        assert written == {"path": str(tmp_path / "letter.de.txt")}
        assert "exists already" in _error(await tools.call_tool("translate_document", arguments))
        other = {**arguments, "output": str(tmp_path / "other.txt"), "format": "md"}
        assert _content(await tools.call_tool("translate_document", other)) == {"path": other["output"]}
        for wrong, message in (
            ({"path": str(tmp_path / "none.txt")}, "does not exist"),
            ({"output": str(tmp_path / "none" / "a.txt")}, "none does not exist"),
            ({"output": str(tmp_path / "a.txt"), "format": "exe"}, "unsupported_format"),
        ):
            assert message in _error(await tools.call_tool("translate_document", {**arguments, **wrong}))

    _with_server(served, session)
    assert (tmp_path / "letter.de.txt").read_text(encoding="utf-8") == "Guten Morgen.\n"


def test_languages_are_detected_and_listed(served: Served) -> None:
    async def session(tools: McpClient) -> None:
        [found, nothing] = _content(await tools.call_tool("detect", {"texts": ["Good morning.", "42"]}))["detections"]
        assert [each["language"] for each in found] == ["en"]
        assert nothing == []
        listed = _content(await tools.call_tool("languages", {}))["languages"]
        assert listed == [{"language": "en", "name": "English", "targets": ["de"]}]

    _with_server(served, session)


def test_the_tools_work_without_a_server() -> None:
    async def run() -> None:
        async with (
            local_app(None) as app,
            AsyncClient(transport=ASGITransport(app)) as client,
            McpClient(create_server(client)) as tools,
        ):
            answer = _content(await tools.call_tool("translate", {"texts": ["Good morning."]}))
            assert answer["translations"][0]["text"] == "Guten Morgen."

    asyncio.run(run())


def test_the_command_speaks_on_standard_input_and_output(served: Served) -> None:
    async def run() -> None:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "kvasir", "mcp", "--url", served.url], cwd=ROOT
        )
        async with McpClient(command) as tools:
            answer = _content(await tools.call_tool("translate", {"texts": ["Good morning."], "target": "de"}))
            assert answer["translations"][0]["text"] == "Guten Morgen."

    asyncio.run(run())
