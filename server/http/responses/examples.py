"""JSON schemas of responses by examples, for the descriptions of protocols that others have specified.

Schemas that are models would be built as validators, one for each status of each operation, at every start.
"""

from collections.abc import Collection, Mapping
from typing import Any

Described = dict[int | str, dict[str, Any]]
"""Responses of an operation by status, as FastAPI takes them."""

_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}


def answers(name: str, *examples: object, optional: Collection[str] = (), status: int = 200) -> Described:
    """Return the description of a successful response that is like one of the examples."""
    return {status: described(name, "Successful Response", *examples, optional=optional)}


def described(name: str, description: str, *examples: object, optional: Collection[str] = ()) -> dict[str, Any]:
    """Return the description of a response that is like one of the examples."""
    schemas = [schema_of(example, optional) for example in examples]
    schema = {"title": name} | (schemas[0] if len(schemas) == 1 else {"anyOf": schemas})
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def schema_of(example: object, optional: Collection[str] = ()) -> dict[str, Any]:
    """Return the JSON schema of values like an example: objects have all fields but `optional` ones, None is any."""
    if isinstance(example, Mapping):
        properties = {field: schema_of(value, optional) for field, value in example.items()}
        required = [field for field in example if field not in optional]
        return {"type": "object", "properties": properties, "required": required}
    if isinstance(example, list):
        return {"type": "array", "items": schema_of(example[0], optional) if example else {}}
    return {} if example is None else {"type": _TYPES[type(example)], "examples": [example]}
