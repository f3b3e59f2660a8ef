"""A second attempt for sentences whose translation may lack a part of them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from server.interface.interruption import checkpoint
from server.interface.loop_turns import in_turns
from server.interface.request import Completion, FinishReason, Hypothesis, Request
from server.text.completeness import SENTENCE_ENDS, doubt, lacks_any, lacks_parts, may_have_parts, parts, shortness
from server.text.items.quotation_marks import with_marks_of
from server.text.protection.capitals import upper, with_first
from server.text.protection.protected import with_outputs
from server.text.protection.truecaser import Truecaser
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.limits import TranslationLimits
from server.translation.sentence_encoder import SentenceEncoder
from server.translation.sentences import Sentence
from server.translation.submission import Submission, mean_score, num_tokens
from server.translation.types import Outcome, TranslationRequest, TranslationResult

_BEAMS_FOR_PARTS = 2  # as good as four: docs/decisions/text.md has the numbers
_SUSPECTS_PER_TURN = 20  # each takes some 100 µs
_LONG = 40  # characters
_CHARACTERS_PER_TOKEN = 8  # of a translation that is far too short


@dataclass(slots=True)
class Suspect:
    """A sentence of the text with this index, its best hypothesis so far, and the outcome of further attempts.

    `others` are the other hypotheses of its search, best first.
    """

    text: int
    source: str
    translation: str
    hypothesis: Hypothesis
    others: Sequence[Hypothesis] = ()
    outcome: Outcome | None = None
    part_requests: Sequence[Request] = field(default=())


class Recovery:
    """Finds translations that may lack something in one request, and decodes their sentences again by stronger means.

    The means, in this order, until an attempt passes: other hypotheses of the same search; each part of the sentence by
    itself.
    """

    def __init__(
        self,
        request: TranslationRequest,
        limits: TranslationLimits,
        tokenizer: Tokenizer,
        encoder: SentenceEncoder,
        target_words: Truecaser,
        *,
        is_streamed: bool = False,
    ) -> None:
        self._languages = (request.source, request.target)
        self._target_words = target_words
        self._tokenizer = tokenizer
        self._encoder = encoder
        options, mode = request.options, limits.if_incomplete_of(request.options)
        # An option about the translation itself makes another attempt another translation than the one requested.
        has_own_terms = bool(options.target_prefix or options.required_phrases or options.decodes_independently)
        has_own_length = bool(options.max_new_tokens or options.max_length_ratio)
        self.checks = mode != "ignore" and not has_own_terms and not has_own_length
        self.recovers = (
            self.checks
            and mode == "recover"
            and not is_streamed
            and options.num_hypotheses == options.num_beam_groups == 1
            and not (options.wants_details or options.suppress_phrases or options.suppress_tokens)
            and request.glossary is None
            and request.formality is None
        )

    def may_be_suspect(self, source: str, best: Hypothesis) -> bool:
        """Return whether a translation is worth a look, without its text. It takes a microsecond."""
        return (
            best.finish_reason is not FinishReason.STOP
            or may_have_parts(source)
            or (len(source) >= _LONG and _CHARACTERS_PER_TOKEN * len(best.token_ids) < len(source))
        )

    def is_suspect(self, suspect: Suspect) -> bool:
        """Return whether a translation may lack something."""
        checkpoint()
        best = suspect.hypothesis
        if best.finish_reason is not FinishReason.STOP:
            return True
        return doubt(suspect.source, suspect.translation, self._languages, _mean_log_probability([best])) >= 1

    async def recover(self, suspects: Sequence[Suspect], submission: Submission) -> None:
        """Set the translation and the outcome of suspects of which another attempt has more of the source."""
        if self.recovers and suspects:
            async for some in in_turns(suspects, _SUSPECTS_PER_TURN):
                for each in some:
                    self._try_hypotheses(each)
            if remaining := [each for each in suspects if each.outcome is None]:
                submission.next_round()
                await self._try_parts(remaining, submission)

    def settle(self, suspects: Iterable[Suspect]) -> None:
        """Set the outcome of suspects that no attempt recovered, and that lack something for certain."""
        for each in suspects:
            if each.outcome is None and self._is_incomplete(each.source, each.translation, each.hypothesis):
                each.outcome = "incomplete"

    def is_better(self, translation: str, hypotheses: Sequence[Hypothesis], suspect: Suspect) -> bool:
        """Return whether another translation, from `hypotheses` of the parts, has more of the source of a suspect."""
        if lacks_parts(suspect.source, translation, self._languages):
            return False
        if self._is_incomplete(suspect.source, suspect.translation, suspect.hypothesis):
            return True
        # A part that ended in a loop is no sign of what is missing.
        have_ended = all(each.finish_reason is FinishReason.STOP for each in hypotheses)
        alone = (self._tokenizer.decode(each.token_ids) for each in hypotheses)
        if have_ended and lacks_any(suspect.translation, alone):
            return True
        was_short = shortness(suspect.source, suspect.translation, self._languages) >= 1
        if was_short != (shortness(suspect.source, translation, self._languages) >= 1):
            return was_short
        return _mean_log_probability(hypotheses) > _mean_log_probability([suspect.hypothesis])

    def _try_hypotheses(self, suspect: Suspect) -> None:
        """Take the best of the other hypotheses that the search of a sentence found, if one passes."""
        for hypothesis in suspect.others:
            translation = self._tokenizer.decode(hypothesis.token_ids)
            if not self.is_suspect(replace(suspect, translation=translation, hypothesis=hypothesis)):
                suspect.translation, suspect.hypothesis, suspect.outcome = translation, hypothesis, "recovered"
                return

    async def _try_parts(self, suspects: Sequence[Suspect], submission: Submission) -> None:
        spans = [parts(each.source, self._languages[0]) for each in suspects]
        requests: list[Request] = []
        for suspect, its_spans in zip(suspects, spans, strict=True):
            if len(its_spans) > 1:
                suspect.part_requests = [
                    self._of_part(suspect.text, suspect.source[start:end]) for start, end in its_spans
                ]
                requests += suspect.part_requests
        completions = await submission.submit(requests)
        for suspect, its_spans in zip(suspects, spans, strict=True):
            if suspect.part_requests:
                self._join(suspect, its_spans, completions)

    def _of_part(self, text: int, part: str) -> Request:
        """Return the request for a part, as a sentence of its own."""
        sentence = part if part[-1] in SENTENCE_ENDS else f"{part}."
        return of_part(self._encoder.plain_request(text, sentence, self._encoder.tokens(sentence)))

    def _join(self, suspect: Suspect, spans: Sequence[tuple[int, int]], completions: Mapping[int, Completion]) -> None:
        """Put the translations of the parts in their places, unless they have less of the source than before."""
        written, position = "", 0
        source, target = self._languages
        between = with_marks_of(target, suspect.source, source)
        for request, (start, end) in zip(suspect.part_requests, spans, strict=True):
            translation = self._tokenizer.decode(completions[request.id].hypotheses[0].token_ids)
            if suspect.source[start].isupper() and written.rstrip()[-1:] in SENTENCE_ENDS:
                translation = with_first(translation, upper, target)
            elif suspect.source[start].islower() and written:
                translation = self._target_words.first_as_inside(translation, only_surely=True)
            if suspect.source[end - 1] not in SENTENCE_ENDS:
                translation = translation.rstrip(SENTENCE_ENDS)
            written += between[position:start] + translation
            position = end
        written += between[position:]
        hypotheses = [completions[each.id].hypotheses[0] for each in suspect.part_requests]
        if self.is_better(written, hypotheses, suspect):
            lengths = [num_tokens(each) for each in hypotheses]
            suspect.hypothesis = Hypothesis(
                [token for each in hypotheses for token in each.token_ids],
                sum([each.log_probability for each in hypotheses]),
                mean_score([each.score for each in hypotheses], lengths),
                FinishReason.of_all([each.finish_reason for each in hypotheses]),
            )
            suspect.translation, suspect.outcome = written, "recovered"

    def _is_incomplete(self, source: str, translation: str, best: Hypothesis) -> bool:
        return best.finish_reason is not FinishReason.STOP or lacks_parts(source, translation, self._languages)


def _mean_log_probability(hypotheses: Sequence[Hypothesis]) -> float:
    """Return the mean log-probability of the tokens; NaN for a greedy search without scores."""
    return sum([each.log_probability for each in hypotheses]) / max(sum(map(num_tokens, hypotheses)), 1)


def of_part(request: Request) -> Request:
    """Return the request for a part, with as many beams as a second attempt has."""
    params = request.params
    beam_size = min(params.beam_size, _BEAMS_FOR_PARTS)
    request.params = replace(params, beam_size=beam_size, num_hypotheses=min(params.num_hypotheses, beam_size))
    return request


def suspects_of(recovery: Recovery, sentences: Iterable[Sentence]) -> list[tuple[Sentence, Suspect]]:
    """Return the sentences whose translations may lack something. Those that were translated in pieces do not."""
    found: list[tuple[Sentence, Suspect]] = []
    if not recovery.checks:
        return found
    for sentence in sentences:
        if (
            sentence.kept is not None
            or len(sentence.jobs) != 1
            or len(sentence.parts) != 1
            or not (answers := sentence.jobs[0].answers)
        ):
            continue
        restored, best = answers[0]
        if recovery.may_be_suspect(sentence.written, best):
            completion = sentence.jobs[0].completion
            others = completion.hypotheses[1:] if completion is not None and is_plain(sentence) else ()
            suspect = Suspect(sentence.text, sentence.written, with_outputs(restored), best, others)
            if recovery.is_suspect(suspect):
                found.append((sentence, suspect))
    return found


def is_plain(sentence: Sentence) -> bool:
    """Return whether the answer of a model is the translation of a sentence, without any change."""
    return sentence.unit.is_plain and not any(job.protected.may_change_answers for job in sentence.jobs)


def with_outcomes(result: TranslationResult, suspects: Sequence[Suspect]) -> TranslationResult:
    """Return a result whose translations name the sentences that were recovered, and those that are incomplete."""
    if not suspects:
        return result
    translations = list(result.translations)
    for index, outcomes in _outcomes_by_text(suspects).items():
        translations[index] = replace(
            translations[index],
            recovered=tuple(outcomes["recovered"]),
            incomplete=tuple(outcomes["incomplete"]),
        )
    return replace(result, translations=translations, outcomes=_outcome_counts(suspects))


def _outcome_counts(suspects: Iterable[Suspect]) -> Mapping[Outcome, int]:
    """Return how many sentences had each outcome."""
    return Counter([each.outcome for each in suspects if each.outcome is not None])


def _outcomes_by_text(suspects: Iterable[Suspect]) -> dict[int, dict[Outcome, list[str]]]:
    """Return the sentences of each text that were recovered, and those that are incomplete."""
    found: dict[int, dict[Outcome, list[str]]] = {}
    for each in suspects:
        if each.outcome is not None:
            found.setdefault(each.text, {"recovered": [], "incomplete": []})[each.outcome].append(each.source)
    return found
