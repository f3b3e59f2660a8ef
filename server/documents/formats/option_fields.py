"""Options of a document's format as requests and command lines give them."""

from typing import Annotated

from pydantic import BaseModel, Field

from server.documents.formats.options import MAX_READING_SPEED, READING_SPEED, FormatOptions, split_columns


class FormatFields(BaseModel):
    """The format of a document, and its options. Unset fields leave the choice to the format."""

    format: Annotated[
        str | None, Field(max_length=16, description="format, such as srt; by default the extension of the name")
    ] = None
    encoding: Annotated[
        str | None,
        Field(max_length=64, description="encoding of a text file, such as utf-16 or latin-1; by default detected"),
    ] = None
    delimiter: Annotated[
        str | None, Field(max_length=3, description="delimiter of a .csv file: , ; | or tab; by default detected")
    ] = None
    columns: Annotated[
        str | None,
        Field(
            max_length=4000,
            description="columns of a .csv file to translate, separated by commas: names in its first row, or numbers "
            "from 1; by default all",
        ),
    ] = None
    join_captions: Annotated[
        bool | None,
        Field(description="translate captions of subtitles together that one sentence runs over; by default true"),
    ] = None
    reading_speed: Annotated[
        float | None,
        Field(
            ge=1,
            le=MAX_READING_SPEED,
            allow_inf_nan=False,
            description=f"characters a second that viewers of subtitles read; by default {READING_SPEED:g}",
        ),
    ] = None

    def options(self, language: str | None = None) -> FormatOptions:
        """Return the options for a translation into this language."""
        columns = split_columns(self.columns)
        return FormatOptions(self.delimiter, columns, self.encoding, language, self.join_captions, self.reading_speed)
