"""Fenced blocks of the documentation, with the HTML comments that state how each is checked."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.architecture.project_files import project_files, text_of

RUN = frozenset({"bash", "python"})
COMPARED = frozenset({"json", "text"})
# Each stands in a comment before the block, followed by a colon and its value if it has one.
NOT_RUN = "not run"  # a program or configuration; the value is the reason
NOT_COMPARED = "not compared"  # an example of output; the value is the reason
SAME_AS = "same as"  # a copy of the file that the value names
SHORTENED = "shortened"  # the JSON output has more fields than the example
ERROR = "error response"  # the server answers the command with an error
MARKS = {
    NOT_RUN: re.compile(r"not run: \S.*"),
    NOT_COMPARED: re.compile(r"not compared: \S.*"),
    SAME_AS: re.compile(r"same as: \S+"),
    SHORTENED: re.compile(r"shortened"),
    ERROR: re.compile(r"error response"),
}

_FENCE = re.compile(
    r"(?:^(?P<indent> *)<!-- (?P<mark>.+?) -->\n\s*)?"
    r"^(?P<opening> *)```(?P<language>\S*)[^\n]*\n(?P<text>.*?)^(?P=opening)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    comment: str = ""

    @property
    def where(self) -> str:
        """Return the page and the line of the block's first line."""
        return f"{self.page}:{self.line}"

    @property
    def mark(self) -> str:
        """Return which of `MARKS` the comment before the block is, or an empty string."""
        return next((mark for mark, pattern in MARKS.items() if pattern.fullmatch(self.comment)), "")

    @property
    def value(self) -> str:
        """Return what the comment contains after its colon."""
        return self.comment.partition(": ")[2]

    @property
    def is_run(self) -> bool:
        """Return whether the block is executed."""
        return self.language in RUN and self.mark in ("", ERROR)

    @property
    def is_compared(self) -> bool:
        """Return whether the block is compared with the output of the command before it."""
        return self.language in COMPARED and self.mark in ("", SHORTENED)

    @property
    def is_checked_or_marked(self) -> bool:
        """Return whether the block is executed or compared, or a comment gives the reason why not."""
        if self.is_run or self.is_compared or self.mark == SAME_AS:
            return True
        return self.mark == (NOT_COMPARED if self.language in COMPARED else NOT_RUN)


def pages() -> tuple[str, ...]:
    """Return the paths of the pages whose blocks are checked. Decisions are records of their time."""
    found = (path for path in project_files() if re.fullmatch(r"docs/[^/]+\.md", path))
    return ("README.md", *found)


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    return list(parse(page, text_of(page)))


def parse(page: str, text: str) -> Iterator[Block]:
    """Yield the fenced blocks of `text`, in order."""
    for found in _FENCE.finditer(text):
        indent = len(found["opening"])
        lines = [line[indent:] for line in found["text"].splitlines()]
        first = text.count("\n", 0, found.start("text")) + 1
        yield Block(page, first, found["language"], "\n".join([*lines, ""]), found["mark"] or "")
