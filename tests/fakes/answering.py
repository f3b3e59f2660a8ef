"""An engine that answers with texts of a table."""

from collections.abc import Mapping
from dataclasses import replace

from bundle.loading import Bundle
from server.interface.request import Completion, Request
from server.text.tokenizers.registry import open_tokenizer
from tests.fakes.echo import EchoGenerator


class Answering(EchoGenerator):
    """Answers with the texts of a table, and with another table where phrases are required.

    A text with `|` has a hypothesis between any two of these signs.
    """

    def __init__(self, bundle: Bundle, answers: Mapping[str, str], required: Mapping[str, str] | None = None) -> None:
        super().__init__(bundle)
        self.tokenizer = open_tokenizer(bundle)
        self._answers, self._required = answers, required or {}

    def _complete(self, request: Request) -> Completion:
        done = super()._complete(request)
        table = self._required if request.params.required_terms else self._answers
        texts = table[self.tokenizer.decode(request.source.tolist())].split("|")
        return replace(
            done,
            hypotheses=[
                replace(each, token_ids=list(self.tokenizer.encode_target(texts[min(index, len(texts) - 1)])))
                for index, each in enumerate(done.hypotheses)
            ],
        )
