"""Options of document formats."""

import csv
from dataclasses import dataclass, fields

READING_SPEED, MAX_READING_SPEED = 17.0, 100.0  # characters a second


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """Options of one document. None and empty values leave the choice to the format."""

    delimiter: str | None = None  # between the cells of a table
    columns: tuple[str, ...] = ()  # of a table to translate: numbers from 1, or names in the first row
    encoding: str | None = None  # of a text file
    language: str | None = None  # of the translation
    join_captions: bool | None = None  # translate captions of one sentence together; None does
    reading_speed: float | None = None  # characters a second

    def given(self) -> dict[str, object]:
        """Return the options that are set."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value not in (None, ())}


NO_FORMAT_OPTIONS = FormatOptions()


def split_columns(written: str | None) -> tuple[str, ...]:
    """Return the columns of a list separated by commas; a name with a comma stands in quotes."""
    if written is None:
        return ()
    columns = next(csv.reader([written], skipinitialspace=True), [])
    return tuple(column.strip() for column in columns if column.strip())
