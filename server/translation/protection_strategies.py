"""How a sentence with something to copy gets through a model: tried one way after the other, until nothing is lost.

1. What is copied is told as names, twice, with other names the second time; any of the beams' hypotheses will do.
2. The names are required phrases of a beam search.
3. What stands between is translated piece by piece. That cannot lose anything.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from bundle.manifest import Shapes
from server.interface.decoding_options import MAX_REQUIRED_TOKENS
from server.interface.errors import TextTooLong
from server.interface.request import Completion, Hypothesis, Request, SentenceParams, Timings, Tokens
from server.text.protection.protected_sentence import Answer, Part, ProtectedSentence, draft, unchanged
from server.text.protection.substitutes import NUM_ROUNDS, stand_ins
from server.text.readers.units import Unit
from server.text.tokenizers.marian import Tokenizer
from server.translation.sentence_params import ParamsResolver
from server.translation.types import TranslationRequest

_REQUIRED, _APART = NUM_ROUNDS, NUM_ROUNDS + 1
NUM_ATTEMPTS = NUM_ROUNDS + 2
_REQUIRED_BEAMS = 4


@dataclass(slots=True)
class Job:
    """A draft on its way through the engine. `answers` are the hypotheses that lost nothing, best first."""

    draft: ProtectedSentence
    request: Request
    completion: Completion | None = None
    answers: list[tuple[Part, Hypothesis]] = field(default_factory=list)


@dataclass(slots=True)
class Sentence:
    """Characters `start` to `end` of a unit, and what they are made of: jobs, and parts that stay as they are."""

    text: int  # the number of its text
    unit: Unit
    start: int
    end: int
    continues: bool = False
    made_of: list[Job | Part] = field(default_factory=list)

    @property
    def jobs(self) -> list[Job]:
        """Those of its last attempt."""
        return [each for each in self.made_of if isinstance(each, Job)]


class Attempts:
    """The attempts of all sentences of one request."""

    def __init__(
        self,
        request: TranslationRequest,
        resolver: ParamsResolver,
        tokenizer: Tokenizer,
        shapes: Shapes,
        max_beam_size: int,
        deadline: float | None,
    ) -> None:
        self._request = request
        self._resolver = resolver
        self._tokenizer = tokenizer
        self._shapes = shapes
        self._max_beam_size = max_beam_size
        self._deadline = deadline

    def begin(self, sentence: Sentence, attempt: int) -> list[Request]:
        """What the engine is to be asked for this attempt; nothing, where it is not possible."""
        made_of = self._made_of(sentence, attempt)
        if made_of is not None:
            sentence.made_of = made_of
        return [] if made_of is None else [job.request for job in sentence.jobs]

    def settle(self, sentence: Sentence, completions: Mapping[int, Completion]) -> bool:
        """Take the answers; whether nothing is lost."""
        if not sentence.made_of or any(job.request.id not in completions for job in sentence.jobs):
            return False
        for job in sentence.jobs:
            job.completion = completions[job.request.id]
            parts = ((self._part(job, hypothesis), hypothesis) for hypothesis in job.completion.hypotheses)
            found = ((part, hypothesis) for part, hypothesis in parts if part is not None)
            job.answers = list(islice(found, self._request.options.num_hypotheses))
        return all(job.answers for job in sentence.jobs)

    def _made_of(self, sentence: Sentence, attempt: int) -> list[Job | Part] | None:
        unit, start, end = sentence.unit, sentence.start, sentence.end
        if not any(map(str.isalpha, unit.masked(" ", start, end))):
            return [unchanged(unit, (start, end))]
        copied = unit.copied_of(start, end)
        if attempt == _APART:
            return list(self._apart(sentence))
        names = stand_ins(len(copied), unit.text[start:end], attempt) if copied else []
        if names is None:
            return None
        told = draft(unit, (start, end), names, self._request.source)
        required: list[Tokens] = []
        if attempt == _REQUIRED:
            required = [tuple(self._tokenizer.encode_target(name)) for name in names]
            if not self._can_require(required):
                return None
        job = self._job(sentence, told, required)
        return None if job is None else [job]

    def _apart(self, sentence: Sentence) -> Iterator[Job | Part]:
        """What is copied, what stands between, and the punctuation around that.

        What is asked of a whole text, such as how it begins, is asked of the first piece.
        """
        unit, place, goes_on = sentence.unit, sentence.start, False
        borders = unit.copied_of(sentence.start, sentence.end)
        for start, end in (*((each.start, each.end) for each in borders), (sentence.end, sentence.end)):
            words = [at for at in range(place, start) if unit.text[at].isalnum()]
            if any(unit.text[at].isalpha() for at in words):
                first, last = words[0], words[-1] + 1
                yield unchanged(unit, (place, first))
                told = draft(unit, (first, last), [], self._request.source, is_fragment=True)
                yield self._job(sentence, told, [], goes_on) or unchanged(unit, (first, last))
                place, goes_on = last, True
            yield unchanged(unit, (place, end))
            place = end

    def _job(
        self, sentence: Sentence, told: ProtectedSentence, required: Sequence[Tokens], goes_on: bool = False
    ) -> Job | None:
        """None where what is told is too long, or more must be said than can be required."""
        source = self._tokenizer.encode(told.text, self._request.target)
        if len(source) > (most := self._shapes.max_source_tokens):
            if told.names:
                return None
            raise TextTooLong(
                f"a part of the text that cannot be divided has {len(source)} tokens; this model takes {most}"
            )
        glossary = self._request.glossary
        terms = () if glossary is None else glossary.target_terms(told.text)
        plain = self._resolver.resolve(sentence.text, len(source), terms, goes_on)
        params = self._params(sentence, told, plain, required)
        if required and sum(map(len, params.required_phrases)) > min(MAX_REQUIRED_TOKENS, params.max_new_tokens - 1):
            return None
        return Job(
            told, Request(source, params, Timings(arrived=0.0), self._deadline, shared=not self._request.bypass_cache)
        )

    def _params(
        self, sentence: Sentence, told: ProtectedSentence, params: SentenceParams, required: Sequence[Tokens]
    ) -> SentenceParams:
        """Those of a plain sentence, unless it has something to copy or tags inside."""
        if _has_tags_inside(sentence) and not params.return_attention:
            layer = max(self._shapes.num_decoder_layers - 2, 0)  # the last but one tells more than the last
            params = replace(params, return_attention=True, alignment_layer=layer)
        if required:
            beam_size = min(max(params.beam_size, _REQUIRED_BEAMS), self._max_beam_size)
            return replace(
                params,
                beam_size=beam_size,
                num_hypotheses=beam_size,
                options=params.options.with_changes(
                    num_beam_groups=1, diversity_penalty=0.0, patience=1.0, return_alternatives=False
                ),
                sampling=None,
                required_phrases=tuple(dict.fromkeys((*params.required_phrases, *required))),
            )
        searches_beams = not params.decodes_independently and params.options.num_beam_groups == 1
        if told.names and searches_beams and params.options.patience >= 1:
            return replace(params, num_hypotheses=params.beam_size)
        return params

    def _can_require(self, required: Sequence[Tokens]) -> bool:
        num_tokens = sum(map(len, required))
        return (
            self._max_beam_size > 1
            and bool(required)
            and all(tokens and self._tokenizer.unknown_token not in tokens for tokens in required)
            and num_tokens <= min(MAX_REQUIRED_TOKENS, self._shapes.max_target_tokens) // 2
        )

    def _part(self, job: Job, hypothesis: Hypothesis) -> Part | None:
        text = self._tokenizer.decode(hypothesis.token_ids)
        details = hypothesis.details
        if not job.request.params.return_attention or details is None or details.attention is None:
            return job.draft.part(Answer(text, (), (), None))
        attention = details.attention[: len(hypothesis.token_ids)]
        source_spans = self._tokenizer.source_spans(job.draft.text)
        target_spans = self._tokenizer.target_spans(hypothesis.token_ids, text)
        if attention.shape != (len(target_spans), len(source_spans)):
            return job.draft.part(Answer(text, (), (), None))
        return job.draft.part(Answer(text, source_spans, target_spans, np.ascontiguousarray(attention)))


def _has_tags_inside(sentence: Sentence) -> bool:
    start, end = sentence.start, sentence.end
    return any(start < place < end for place in sentence.unit.cuts(start, end))
