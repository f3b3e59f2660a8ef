"""Bodies that come as JSON or as a form, for the OpenAPI description."""

from pydantic import BaseModel


def body_of(fields: type[BaseModel], *media_types: str) -> dict[str, object]:
    """The part of an operation that describes its body; by default it may be JSON or a form."""
    schema = fields.model_json_schema()
    accepted = media_types or ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"content": {media_type: {"schema": schema} for media_type in accepted}, "required": True}}
