"""Conversion of OpenAPI 3.1 operations to Swagger 2.0, for clients that read nothing newer."""

import copy
from collections.abc import Mapping
from typing import Any

_DEFINITIONS = ("#/components/schemas/", "#/definitions/")


def swagger(openapi: Mapping[str, Any], tag: str) -> dict[str, object]:
    """Return the operations with this tag. Bodies are described as JSON; Swagger 2.0 has no alternative media types."""
    paths: dict[str, dict[str, object]] = {}
    for path, operations in openapi["paths"].items():
        for method, operation in operations.items():
            if tag in operation.get("tags", ()):
                paths.setdefault(path, {})[method] = _operation(operation)
    schemas = openapi.get("components", {}).get("schemas", {})
    return {
        "swagger": "2.0",
        "info": {"title": openapi["info"]["title"], "version": openapi["info"]["version"]},
        "basePath": "/",
        "paths": paths,
        "definitions": {name: _schema(schema) for name, schema in schemas.items()},
    }


def _operation(operation: Mapping[str, Any]) -> dict[str, object]:
    converted: dict[str, object] = {
        "tags": operation["tags"],
        "summary": operation.get("summary", ""),
        "produces": ["application/json"],
        "responses": {
            status: {"description": response["description"]} | _content(response)
            for status, response in operation["responses"].items()
        },
    }
    parameters = [
        {"name": each["name"], "in": each["in"], "required": each.get("required", False), "type": "string"}
        for each in operation.get("parameters", ())
    ]
    if body := operation.get("requestBody"):
        converted["consumes"] = list(body["content"])
        parameters.append({"name": "body", "in": "body", "required": True, **_content(body)})
    if parameters:
        converted["parameters"] = parameters
    return converted


def _content(holder: Mapping[str, Any]) -> dict[str, object]:
    for media_type in holder.get("content", {}).values():
        return {"schema": _schema(media_type.get("schema", {}))}
    return {}


def _schema(schema: object) -> object:
    """Convert a schema: references point to `definitions`, and of several types the first is used."""
    if isinstance(schema, list):
        return [_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    converted = copy.copy(schema)
    for choice in ("anyOf", "oneOf"):
        if alternatives := converted.pop(choice, None):
            converted = alternatives[0] | converted
    if reference := converted.get("$ref"):
        return {"$ref": reference.replace(*_DEFINITIONS)}
    return {name: _schema(value) for name, value in converted.items() if name not in ("$defs", "const")}
