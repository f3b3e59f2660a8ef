"""OpenAPI descriptions of bodies that are JSON or a form."""

from pydantic import BaseModel


def body_of(fields: type[BaseModel], *media_types: str) -> dict[str, object]:
    """Return the part of an operation that describes its body; default media types: JSON and form."""
    schema = fields.model_json_schema()
    accepted = media_types or ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"content": {media_type: {"schema": schema} for media_type in accepted}, "required": True}}
