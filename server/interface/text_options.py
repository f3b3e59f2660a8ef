"""Decoding options about texts and their sentences: division, notation, and the sentences that need attention."""

from typing import Annotated, Literal

from pydantic import Field

from server.interface.detail_options import DetailOptions
from server.interface.option_metadata import RESOLVED

# What becomes of a sentence that is not one to translate.
KeepOrTranslate = Literal["keep", "translate"]
IfIncomplete = Literal["recover", "flag", "ignore"]
OnLowQuality = Literal["flag", "keep_source"]


class TextOptions(DetailOptions):
    """Decoding options that apply before or after the search."""

    localize_numbers: Annotated[
        bool,
        RESOLVED,
        Field(
            description="write numbers, amounts, dates and times that are put back into a translation as its language "
            "does; false keeps their notation"
        ),
    ] = True
    split: Annotated[
        bool, RESOLVED, Field(description="divide texts into sentences; false decodes each text as one sentence")
    ] = True
    if_already_target: Annotated[
        KeepOrTranslate | None,
        RESOLVED,
        Field(description="sentences that are in the target language already; by default as the server is set: `keep`"),
    ] = None
    if_untranslatable: Annotated[
        KeepOrTranslate | None,
        RESOLVED,
        Field(
            description="sentences in other languages, source code, lists of names, and texts without words of the "
            "vocabulary; by default as the server is set: `keep`"
        ),
    ] = None
    if_incomplete: Annotated[
        IfIncomplete | None,
        RESOLVED,
        Field(
            description="translations that may lack a part of their sentence: decode it again, only name it, or "
            "neither; by default as the server is set: `recover`"
        ),
    ] = None
    return_quality: Annotated[
        bool,
        RESOLVED,
        Field(description="return the quality of each translation and of its sentences, 0 to 1; see docs/quality.md"),
    ] = False
    min_quality: Annotated[
        float | None,
        RESOLVED,
        Field(ge=0, le=1, description="quality of a sentence below which on_low_quality applies; by default none"),
    ] = None
    on_low_quality: Annotated[
        OnLowQuality | None,
        RESOLVED,
        Field(
            description="sentences with a quality below min_quality: name them, or keep their source; by default as "
            "the server is set: `flag`"
        ),
    ] = None
