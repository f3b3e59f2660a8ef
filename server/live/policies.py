"""Policies of live translation: how much of a continuation is committed while its sentence is still open."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, Literal, Protocol, get_args

from server.interface.errors import InvalidRequest
from server.interface.request import Tokens

PolicyName = Literal["align-att", "local-agreement", "wait-k"]
DEFAULT_POLICY: Final[PolicyName] = "align-att"


@dataclass(frozen=True, slots=True)
class Continuation:
    """The most likely translation of a sentence as far as it is known, after the committed tokens.

    `tokens` begin with the committed ones. `attended` [num_tokens] is the source word that each token attends to most,
    and `num_target_words` [num_tokens] counts the target words begun up to each token.
    """

    tokens: Tokens
    attended: Sequence[int]
    num_target_words: Sequence[int]


class Policy(Protocol):
    """Decides on the tokens that no later source word will change."""

    def num_final(self, now: Continuation, num_words: int, before: Continuation | None) -> int:
        """Return how many tokens of a continuation to commit when `num_words` source words are known.

        `before` is the continuation of the update before, of the same sentence; None in the first one.
        """
        ...


@dataclass(frozen=True, slots=True)
class AlignAtt:
    """Commits tokens up to the first that attends to one of the last `frame` words (Papi et al. 2023, 2305.11408)."""

    frame: int

    def num_final(self, now: Continuation, num_words: int, before: Continuation | None) -> int:
        """Return the number of tokens before the first one that attends inside the frame."""
        return sum(1 for _ in takewhile(lambda word: word < num_words - self.frame, now.attended))


@dataclass(frozen=True, slots=True)
class LocalAgreement:
    """Commits what two successive continuations have in common (Liu et al. 2020, 2005.11185)."""

    def num_final(self, now: Continuation, num_words: int, before: Continuation | None) -> int:
        """Return the length of the common beginning of both continuations."""
        if before is None:
            return 0
        pairs = zip(now.tokens, before.tokens, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


@dataclass(frozen=True, slots=True)
class WaitK:
    """Commits one target word for each source word after the first `frame` (wait-k, Ma et al. 2019, 1810.08398)."""

    frame: int

    def num_final(self, now: Continuation, num_words: int, before: Continuation | None) -> int:
        """Return the tokens of as many target words as source words are known beyond the first ones."""
        return sum(1 for _ in takewhile(lambda words: words <= num_words - self.frame, now.num_target_words))


def policy_of(name: str, frame: int) -> Policy:
    """Return the policy with this name. Raises `InvalidRequest` for an unknown name."""
    match name:
        case "align-att":
            return AlignAtt(frame)
        case "local-agreement":
            return LocalAgreement()
        case "wait-k":
            return WaitK(frame)
    raise InvalidRequest(f"`policy` must be one of {', '.join(get_args(PolicyName))}. Given: {name[:60]}")
