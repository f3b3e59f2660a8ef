"""Models of JSON responses by examples, for the descriptions of protocols that others have specified."""

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel, Field, create_model

Described = dict[int | str, dict[str, Any]]
"""Responses of an operation by status, as FastAPI takes them."""


def answers(name: str, *examples: object, optional: Collection[str] = (), status: int = 200) -> Described:
    """Return the description of a successful response that is like one of the examples."""
    kinds = [_type_of(f"{name}{number or ''}", example, optional) for number, example in enumerate(examples)]
    model = kinds[0]
    for kind in kinds[1:]:
        model |= kind
    return {status: {"model": model, "description": "Successful Response"}}


def model_of(name: str, example: Mapping[str, object], optional: Collection[str] = ()) -> type[BaseModel]:
    """Return a model of objects like an example. It has all fields but `optional` ones; None stands for any value."""
    fields: dict[str, Any] = {
        field: (
            _type_of(f"{name}{field[:1].upper()}{field[1:]}", value, optional),
            Field(None if field in optional else ..., examples=[value]),
        )
        for field, value in example.items()
    }
    return create_model(name, **fields)


def _type_of(name: str, example: object, optional: Collection[str]) -> Any:  # noqa: ANN401 - known at run time only
    if isinstance(example, Mapping):
        return model_of(name, example, optional)
    if isinstance(example, list):
        return list[_type_of(name, example[0] if example else None, optional)]  # type: ignore[misc]  # the same
    return Any if example is None else type(example)
