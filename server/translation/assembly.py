"""From restored sentences to translations: text, scores, and token details."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from server.interface.interruption import checkpoint
from server.interface.request import FinishReason, Hypothesis
from server.text.protection.means import KeptItem
from server.text.protection.protected import Restored
from server.text.protection.tag_placement import Block, render
from server.text.readers.units import Unit
from server.text.tokenizers.tokenizer import Tokenizer
from server.text.unicode_text import replace_lone_surrogates
from server.translation.reading import SegmentedTexts
from server.translation.sentences import Job, SegmentedText, Sentence
from server.translation.source_checks import kept_counts, with_whole_text
from server.translation.submission import mean_score, num_tokens, sentence_tokens
from server.translation.token_details import sentence_details
from server.translation.types import (
    Alternative,
    KeptSentence,
    Phases,
    Translation,
    TranslationRequest,
    TranslationResult,
)


def assemble(
    texts: SegmentedTexts, request: TranslationRequest, tokenizer: Tokenizer, phases: Phases, seed: int | None
) -> TranslationResult:
    """Return the translations of restored texts, in their order, and the numbers for metrics and logs."""
    completions = [job.completion for each in texts.sentences for job in each.jobs if job.completion is not None]
    translations = [_translation(text, request, tokenizer) for text in texts.texts]
    return TranslationResult(
        translations,
        phases,
        sentence_tokens(completions),
        sum([sentence.continues for sentence in texts.sentences]),
        seed,
        Counter([(item.kind, item.means) for translation in translations for item in translation.protected]),
    )


def _translation(text: SegmentedText, request: TranslationRequest, tokenizer: Tokenizer) -> Translation:
    jobs = [job for sentence in text.sentences for job in sentence.jobs]
    ranked = [_ranked_hypotheses(jobs, rank) for rank in range(request.options.num_hypotheses)]
    best, *others = [_alternative(text, rank, hypotheses) for rank, hypotheses in enumerate(ranked)]
    chosen = ranked[0]
    options = request.options
    return Translation(
        best.text,
        sum([len(job.request.source) for job in jobs]),
        sum(map(num_tokens, chosen)),
        FinishReason.of_all([hypothesis.finish_reason for hypothesis in chosen]),
        best.score,
        tuple(others),
        best.log_probability,
        tuple(
            sentence_details(job.request.source, hypothesis, options, tokenizer)
            for job, hypothesis in zip(jobs, chosen, strict=True)
        )
        if options.wants_details
        else (),
        tuple(_kept(text)) if text.has_items else (),
    )


def with_kept_sentences(result: TranslationResult, sources: Sequence[str], texts: SegmentedTexts) -> TranslationResult:
    """Return a result whose translations name the sentences that were kept, if that was checked."""
    if texts.check is None and not any(each.kept for each in texts.sentences):
        return result
    translations = []
    for translation, source, text in zip(result.translations, sources, texts.texts, strict=True):
        sentences = list(text.sentences)
        kept = [KeptSentence(each.written, each.kept) for each in sentences if each.kept is not None]
        is_decoded = any(each.jobs for each in sentences)
        found = with_whole_text(kept, replace_lone_surrogates(source), translation.text, is_decoded=is_decoded)
        translations.append(replace(translation, kept=found) if found else translation)
    counts = kept_counts([translation.kept for translation in translations])
    return replace(result, translations=translations, kept_sentences=counts)


def _kept(text: SegmentedText) -> Iterator[KeptItem]:
    """Yield the items of the best translation."""
    for sentence in text.sentences:
        for part in sentence.parts:
            yield from _ranked(part, 0).kept


def _alternative(text: SegmentedText, rank: int, hypotheses: Sequence[Hypothesis]) -> Alternative:
    parts = [
        part if isinstance(part, str) else _written(part, text.sentences_of[index], rank)
        for index, part in enumerate(text.document)
    ]
    lengths = [num_tokens(hypothesis) for hypothesis in hypotheses]
    if not hypotheses:
        return Alternative("".join(parts), math.nan)
    score = mean_score([hypothesis.score for hypothesis in hypotheses], lengths)
    return Alternative("".join(parts), score, math.fsum([hypothesis.log_probability for hypothesis in hypotheses]))


def _written(unit: Unit, sentences: Sequence[Sentence], rank: int) -> str:
    """Return the unit's translation of this rank, with what stood between its sentences."""
    text, position = "", 0
    blocks: list[Block] = []
    outputs: list[str] = []
    for sentence in sentences:
        checkpoint()
        text += unit.text[position : sentence.start]
        is_blank = False
        for part in sentence.parts:
            restored = _ranked(part, rank)
            if is_blank and text.endswith(" ") and restored.text.startswith(" "):
                text = text[:-1]  # the model wrote nothing for what stood between them
            is_blank = not restored.text
            if restored.block is not None:
                target = [(len(text) + start, len(text) + end) for start, end in restored.block.target]
                blocks.append(replace(restored.block, target=target))
                outputs += restored.outputs
            text += restored.text
        position = sentence.end
    text += unit.text[position:]
    return render(unit, text, blocks, outputs) if blocks else text


def _ranked(part: Job | Restored, rank: int) -> Restored:
    """Return the answer of this rank, or the last one if there are fewer."""
    return part if isinstance(part, Restored) else part.answers[min(rank, len(part.answers) - 1)][0]


def _ranked_hypotheses(jobs: Sequence[Job], rank: int) -> list[Hypothesis]:
    return [job.answers[min(rank, len(job.answers) - 1)][1] for job in jobs]
