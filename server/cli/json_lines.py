"""Translations as lines of JSON, with the requested fields only."""

import json
import math
from dataclasses import asdict

from server.translation.types import Translation

# Fields that were not requested.
_EMPTY: tuple[object, ...] = (None, (), [])


def json_line(translation: Translation) -> str:
    """Return a translation as one line, with the field names of `POST /v1/translate`."""
    return json.dumps(_known(asdict(translation)), ensure_ascii=False)


def _known(value: object) -> object:
    if isinstance(value, dict):
        return {name: _known(each) for name, each in value.items() if each not in _EMPTY and not _is_nan(each)}
    if isinstance(value, list | tuple):
        return [None if _is_nan(each) else _known(each) for each in value]
    return value


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
