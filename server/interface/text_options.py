"""Decoding options about texts and their sentences: division, notation, and the sentences that need attention."""

from typing import Annotated, Literal

from pydantic import Field

from server.interface.detail_options import DetailOptions
from server.interface.option_metadata import RESOLVED

# What becomes of a text that is in the target language.
KeepOrTranslate = Literal["keep", "translate"]
OnLowQuality = Literal["flag", "keep_source"]


class TextOptions(DetailOptions):
    """Decoding options that apply before or after the search."""

    localize_numbers: Annotated[
        bool,
        RESOLVED,
        Field(
            description="write grouped numbers that a model copied, such as 20,000, with the separators of the target "
            "language; false returns them as the model wrote them"
        ),
    ] = True
    split: Annotated[
        bool, RESOLVED, Field(description="divide texts into sentences; false decodes each text as one sentence")
    ] = True
    if_already_target: Annotated[
        KeepOrTranslate | None,
        RESOLVED,
        Field(description="texts that are in the target language already; by default as the server is set: `keep`"),
    ] = None
    repair: Annotated[
        bool | None,
        RESOLVED,
        Field(
            description="decode a sentence again if its translation lacks something, where the bundle has repairs; by "
            "default as the server is set: true"
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
