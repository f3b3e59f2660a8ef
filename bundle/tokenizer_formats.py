"""Files of tokenizers: `tokenizer.json`, and merges of byte-pair encoding as subword-nmt writes them."""

from dataclasses import dataclass
from typing import Final

from tokenizers import Tokenizer

_TRIAL_TEXTS: Final = ("", " ", "a", "Hello, world! 42", "Grüße  \u6771\u4eac \U0001f989 e\u0301 \u200b\0\n", "x" * 200)


def open_json_tokenizer(content: bytes) -> Tokenizer:
    """Return the tokenizer without truncation and padding. Raises ValueError unless it encodes and decodes texts.

    Many settings are used by the first text only: a damaged one would fail in the middle of a request.
    """
    try:
        tokenizer = Tokenizer.from_str(content.decode("utf-8"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        for text in _TRIAL_TEXTS:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            for tokens in (ids, *([id_] for id_ in ids)):
                tokenizer.decode(tokens)
    except BaseException as error:
        # The package raises `Exception` itself, and ends with a panic of Rust for some files, which is neither an
        # `Exception` nor importable by name.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ValueError(str(error)) from error
    return tokenizer


END_OF_WORD: Final = "</w>"
_HEADER: Final = "#version:"
_VERSIONS: Final = ("0.1", "0.2")


@dataclass(frozen=True, slots=True)
class BpeCodes:
    """Pairs of symbols in the order in which they are merged (Sennrich et al. 2016), one pair a line of the file.

    In version 0.2 the last symbol of a word ends with `</w>`, in version 0.1, which has no header, `</w>` is a symbol.
    """

    merges: tuple[tuple[str, str], ...]
    ends_join_symbols: bool
    """Whether `</w>` is a part of symbols, as in version 0.2."""


def read_bpe_codes(content: bytes, name: str) -> BpeCodes:
    """Return the merges of a file. Raises ValueError that names the line if it is damaged or of another version."""
    try:
        lines = content.decode("utf-8").rstrip("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not UTF-8: {error}") from error
    version = "0.1"
    if lines[0].startswith(_HEADER):
        version = lines.pop(0).removeprefix(_HEADER).strip()
        if version not in _VERSIONS:
            raise ValueError(f"{name}: the version must be {' or '.join(_VERSIONS)}. Given: {version[:20]!r}")
    merges: dict[tuple[str, str], None] = {}
    for number, line in enumerate(lines, 1 + (version == "0.2")):
        first, _, second = line.strip("\r ").partition(" ")
        if not first or not second or " " in second:
            raise ValueError(f"{name}, line {number} must be two symbols. Given: {line[:60]!r}")
        merges.setdefault((first, second))  # the first of equal pairs counts
    return BpeCodes(tuple(merges), version == "0.2")
