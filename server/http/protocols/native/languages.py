"""`GET /v1/languages`: languages of the server, with their names."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from server.http.protocols.native.fields import MAX_TAG_CHARACTERS
from server.http.state import ServerState, server_state
from server.text.language_tags import display_name, own_name

router = APIRouter(prefix="/v1", tags=["translation"])

NameLanguage = Annotated[
    str,
    Query(alias="in", max_length=MAX_TAG_CHARACTERS, description="language of the names; English if it has no names"),
]


class LanguageAnswer(BaseModel):
    """A language of at least one model."""

    language: str = Field(description="tag, as in source and target")
    name: str = Field(description="name in the requested language; the tag if it has no name")
    own_name: str | None = Field(description="name in the language itself")
    source: bool = Field(description="whether texts in it are translated")
    target: bool = Field(description="whether texts are translated into it")


class LanguagesAnswer(BaseModel):
    """All languages, ordered by tag."""

    languages: list[LanguageAnswer]


@router.get("/languages")
async def languages(
    server: Annotated[ServerState, Depends(server_state)], name_language: NameLanguage = "en"
) -> LanguagesAnswer:
    """Return the languages of this server with their names."""
    routes = [] if server.router is None else server.router.routes
    sources, targets = {route.source for route in routes}, {route.target for route in routes}
    return LanguagesAnswer(
        languages=[
            LanguageAnswer(
                language=tag,
                name=display_name(tag, name_language),
                own_name=own_name(tag),
                source=tag in sources,
                target=tag in targets,
            )
            for tag in sorted(sources | targets)
        ]
    )
