"""Decoding options of translations that are decoded or given: the length in scores, and details of tokens."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from server.interface.option_metadata import RESOLVED

MAX_LENGTH_PENALTY = 10.0  # of either sign


class DetailOptions(BaseModel):
    """Decoding options that apply to given translations as well: the score, and details of tokens."""

    # Strict: a client that sends true or "4" for a number has a bug, which a conversion would hide.
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    length_penalty: Annotated[
        float,
        Field(
            ge=-MAX_LENGTH_PENALTY,
            le=MAX_LENGTH_PENALTY,
            description="exponent of the length in the score of a hypothesis; above 0 favours longer translations",
        ),
    ] = 1.0
    return_token_scores: Annotated[bool, Field(description="return the log-probability of each token")] = False
    num_token_alternatives: Annotated[
        int, Field(ge=0, le=10, description="number of most likely tokens to return at each position")
    ] = 0
    return_alignments: Annotated[
        bool, RESOLVED, Field(description="return the source token that each target token attends to most")
    ] = False
    return_attention: Annotated[
        bool, RESOLVED, Field(description="return all cross-attention weights, target tokens by source tokens")
    ] = False
    alignment_layer: Annotated[
        int, RESOLVED, Field(description="decoder layer of alignments and attention, counted from 0; -1 is the last")
    ] = -1
    alignment_heads: Annotated[
        tuple[int, ...],
        Field(strict=False, max_length=64, description="heads of that layer to average; by default all"),
    ] = ()

    @property
    def wants_details(self) -> bool:
        """Whether the answer has anything for each token."""
        return bool(
            self.return_token_scores or self.num_token_alternatives or self.return_alignments or self.return_attention
        )
