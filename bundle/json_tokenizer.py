"""Tokenizers in `tokenizer.json`. The package that reads them ends with a panic of Rust for some files."""

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
        # The package raises `Exception` itself. A panic is neither an `Exception` nor importable by name.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ValueError(str(error)) from error
    return tokenizer
