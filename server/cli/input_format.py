"""Format of the input: lines of text or a document, by its name or as the user states."""

from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.files import STANDARD
from server.documents.formats.options import FormatOptions
from server.interface.errors import InvalidRequest, UnsupportedFormat

if TYPE_CHECKING:
    from server.documents.formats.registry import DocumentFormat

_LINES = ".txt"


def input_format(name: str, options: FormatOptions, format_name: str | None) -> "DocumentFormat | None":
    """Return the format of a document; None for lines of text.

    Standard input and pipes without the extension of a document are lines. Raises `UnsupportedFormat` for other files,
    with the formats available, and `InvalidRequest` for an option that the format does not have.
    """
    is_stream = name == STANDARD or not Path(name).is_file()
    if is_stream and format_name is None and not _is_document(name):
        return None
    extension = Path(name).suffix.lower() if format_name is None else f".{format_name.lower().removeprefix('.')}"
    if extension == _LINES and not (options.delimiter or options.columns):
        return None
    # Imported where they are needed: the formats take as long to import as a hundred lines to translate.
    from server.documents.formats.registry import format_of

    try:
        kind = format_of(name, options, format_name)
    except UnsupportedFormat as error:
        raise UnsupportedFormat(f"{error}: `--format txt` translates line by line") from error
    if is_stream:
        raise InvalidRequest(f"a {kind.extension} document must be a file. Given: standard input or a pipe")
    return kind


def _is_document(name: str) -> bool:
    extension = Path(name).suffix.lower()
    if extension in ("", _LINES):
        return False
    from server.documents.formats.registry import FORMATS

    return extension in FORMATS


def check_document_output(output: str, kind: "DocumentFormat", *, is_named: bool) -> None:
    """Raise `InvalidRequest` unless the output is a file with the extension of the result; any if `is_named`."""
    expected = kind.result_extension or kind.extension
    if output == STANDARD or (Path(output).suffix.lower() != expected and not (is_named and not kind.result_extension)):
        raise InvalidRequest(
            f"the output of a {kind.extension} file must end in {expected}; set it with --output. Given: {output}"
        )
    if Path(output).exists() and not Path(output).is_file():  # it would be replaced
        raise InvalidRequest(f"the output of a document must be a file. {output} is a pipe or a device")
