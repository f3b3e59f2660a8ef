"""Options of `kvasir translate`, and those that a kind of input cannot have."""

from dataclasses import dataclass
from pathlib import Path

from server.documents.formats.options import NO_FORMAT_OPTIONS, FormatOptions
from server.interface.decoding_options import NO_OPTIONS, DecodingOptions
from server.interface.errors import InvalidRequest
from server.translation.types import MemoryLookup
from server.workers.cache import DEFAULT_MAX_SENTENCES

# Options whose results only JSON can contain.
_DETAILS = (
    "return_scores", "return_token_scores", "num_token_alternatives", "return_alignments", "return_attention",
    "alignment_layer", "alignment_heads",
)  # fmt: skip
_FOR_WHOLE_TEXTS = ("target_prefix", "required_phrases", "return_alternatives")
_OF_TABLES = ("delimiter", "columns")
_FOR_LINES = ("num_hypotheses", *_DETAILS)


@dataclass(frozen=True, slots=True)
class OfflineOptions:
    """Options for the translation of a file. Languages are required only if the models have several.

    With `as_json` each line of the output is a JSON object with scores, alternatives and details.
    """

    source: str | None = None
    target: str | None = None
    decoding: DecodingOptions = NO_OPTIONS
    threads: int | None = None  # None: all usable processors
    cache_sentences: int = DEFAULT_MAX_SENTENCES  # 0 disables the cache
    as_json: bool = False
    format_options: FormatOptions = NO_FORMAT_OPTIONS
    memory_file: Path | None = None  # of a store whose memories are looked in
    memory_threshold: int | None = None

    def memory(self) -> MemoryLookup | None:
        """Open the translation memories; to be called in the process that uses them."""
        if self.memory_file is None:
            return None
        from server.memory.store import DEFAULT_THRESHOLD, Lookup, MemoryStore  # only where there is one

        store = MemoryStore(self.memory_file)
        threshold = DEFAULT_THRESHOLD if self.memory_threshold is None else self.memory_threshold
        return Lookup(store, tuple(store.memories("", 0, 1)[0]), threshold)


def check_document_options(options: OfflineOptions) -> None:
    """Raise `InvalidRequest` for options that have no effect, or no meaning, in the translation of a document."""
    if options.as_json:
        raise InvalidRequest("`--json` is for text with one text a line. Given: a document")
    for name in options.decoding.changed():
        if name in _FOR_LINES:
            raise InvalidRequest(f"`{name}` cannot be used with a document: a document has no place for its result")
        if name in _FOR_WHOLE_TEXTS:
            raise InvalidRequest(
                f"`{name}` cannot be used with a document: it applies to texts of one sentence; translate a text file"
            )


def check_line_options(options: OfflineOptions) -> None:
    """Raise `InvalidRequest` for options that have no effect in the translation of lines."""
    for name in options.format_options.given():
        if name != "encoding":
            files = ".csv" if name in _OF_TABLES else "subtitle"
            raise InvalidRequest(f"`{name}` is for {files} files only. Given: text with one text a line")
    if options.as_json:
        return
    for name in options.decoding.changed():
        if name in _DETAILS:
            raise InvalidRequest(f"`{name}` needs `--json`: lines of text have no place for its result")
