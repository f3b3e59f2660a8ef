"""Sources that a model reads as a whole: they fit, or lose their last tokens on request."""

import numpy as np

from bundle.manifest import BundleConfig
from server.interface.errors import TextTooLong
from server.interface.request import TokenIds


class SourceLength:
    """The longest source of a model."""

    def __init__(self, config: BundleConfig) -> None:
        described = config.tokenizer
        num_after = 1 if described.after is None else len(described.after)
        self._num_after = num_after + (described.source_language_last and bool(described.source_language_tokens))
        self._max_tokens = config.shapes.max_source_tokens

    def fitted(self, index: int, source: TokenIds, *, truncate: bool) -> TokenIds:
        """Return the source of the text at `index`, shortened before its control tokens if it must be.

        Raises `TextTooLong` for a longer source that must not be truncated.
        """
        limit = self._max_tokens
        if len(source) <= limit:
            return source
        if not truncate:
            raise TextTooLong(
                f"text {index} must have at most {limit} tokens with this model. Given: {len(source)}; "
                "shorten it, or set `truncate` to drop its end"
            )
        end = len(source) - self._num_after
        return np.concatenate([source[: limit - self._num_after], source[end:]])
