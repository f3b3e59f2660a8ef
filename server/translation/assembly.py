"""From restored sentences to translations: text, scores, and details."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from server.interface.decoding_options import DetailOptions
from server.interface.interruption import checkpoint
from server.interface.request import FinishReason, Hypothesis, TokenIds
from server.text.joining import between
from server.text.protection.tag_placement import Block, render
from server.text.readers.units import Unit
from server.text.tokenizers.tokenizer import Tokenizer
from server.text.unicode_text import replace_lone_surrogates
from server.translation.reading import SegmentedText, SegmentedTexts, Sentence
from server.translation.submission import mean_score, num_tokens, sentence_tokens
from server.translation.types import (
    Alternative,
    KeptSentence,
    Outcome,
    Phases,
    RepairedSentence,
    SentenceDetails,
    SentenceMemory,
    TokenScore,
    Translation,
    TranslationRequest,
    TranslationResult,
)


def assemble(
    texts: SegmentedTexts, request: TranslationRequest, tokenizer: Tokenizer, phases: Phases, seed: int | None
) -> TranslationResult:
    """Return the translations of restored texts, in their order, and the numbers for metrics and logs."""
    completions = [job.completion for each in texts.sentences for job in each.jobs if job.completion is not None]
    translations = [
        _translation(text, source, request, tokenizer) for text, source in zip(texts.texts, request.texts, strict=True)
    ]
    return TranslationResult(
        translations,
        phases,
        sentence_tokens(completions),
        sum([sentence.continues for sentence in texts.sentences]),
        seed,
        _outcomes(texts.sentences),
    )


def _outcomes(sentences: Sequence[Sentence]) -> Mapping[Outcome, int]:
    counts: dict[Outcome, int] = {
        "repaired": sum([each.repair is not None for each in sentences]),
        "incomplete": sum([each.is_incomplete for each in sentences]),
        "numbers_differ": sum([each.numbers is not None and each.numbers.differ for each in sentences]),
    }
    return {outcome: number for outcome, number in counts.items() if number}


def _translation(text: SegmentedText, source: str, request: TranslationRequest, tokenizer: Tokenizer) -> Translation:
    sentences = list(text.sentences)
    jobs = [job for sentence in sentences for job in sentence.jobs]
    ranked = [
        [hypothesis for sentence in sentences for hypothesis in sentence.hypotheses(rank)]
        for rank in range(request.options.num_hypotheses)
    ]
    best, *others = [_alternative(text, rank, hypotheses) for rank, hypotheses in enumerate(ranked)]
    chosen = ranked[0]
    options = request.options
    if text.kept is not None:
        visible = replace_lone_surrogates(source).strip()
        kept = [KeptSentence(visible, text.kept)] if visible else []
    else:
        kept = [KeptSentence(each.written, each.kept) for each in sentences if each.kept is not None]
    numbers = [each.numbers for each in sentences if each.numbers is not None]
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
        tuple(span for sentence in sentences for part in sentence.restored() for span in part.kept),
        tuple(kept),
        repaired=tuple(RepairedSentence(each.written, each.repair) for each in sentences if each.repair is not None),
        incomplete=tuple(each.written for each in sentences if each.is_incomplete),
        missing_numbers=tuple(dict.fromkeys(number for each in numbers for number in each.missing)),
        invented_numbers=tuple(dict.fromkeys(number for each in numbers for number in each.invented)),
        memory=()
        if request.memory is None
        else tuple(
            SentenceMemory(each.written, each.translation, each.memory)
            for each in sentences
            if any(map(str.isalpha, each.written))
        ),
    )


def _alternative(text: SegmentedText, rank: int, hypotheses: Sequence[Hypothesis]) -> Alternative:
    parts = [
        part if isinstance(part, str) else _written(part, text.sentences_of[index], rank, text.target)
        for index, part in enumerate(text.document)
    ]
    lengths = [num_tokens(hypothesis) for hypothesis in hypotheses]
    if not hypotheses:
        return Alternative("".join(parts), math.nan)
    score = mean_score([hypothesis.score for hypothesis in hypotheses], lengths)
    return Alternative("".join(parts), score, math.fsum([hypothesis.log_probability for hypothesis in hypotheses]))


def _written(unit: Unit, sentences: Sequence[Sentence], rank: int, target: str) -> str:
    """Return the unit's translation of this rank, with what stands between its sentences."""
    text, position = "", 0
    blocks: list[Block] = []
    outputs: list[str] = []
    for sentence in sentences:
        checkpoint()
        gap = unit.text[position : sentence.start]
        text += between(gap, unit.text[:position], target) if position else gap
        for restored in sentence.restored(rank):
            if restored.block is not None:
                target_words = [(len(text) + start, len(text) + end) for start, end in restored.block.target]
                blocks.append(replace(restored.block, target=target_words))
            outputs += restored.outputs
            text += restored.text
        position = sentence.end
    text += unit.text[position:]
    return render(unit, text, blocks, outputs)


def sentence_details(
    source: TokenIds, hypothesis: Hypothesis, options: DetailOptions, tokenizer: Tokenizer
) -> SentenceDetails:
    """Return token scores, alternatives and alignments of one translated sentence."""
    checkpoint()
    details = hypothesis.details
    assert details is not None, "a request for details has a decoder that records them"
    tokens = list(hypothesis.token_ids)
    if hypothesis.finish_reason is FinishReason.STOP:
        tokens.append(tokenizer.end_token)
    attention = details.attention
    return SentenceDetails(
        source_tokens=tokenizer.source_pieces(source.tolist()),
        target_tokens=tokenizer.target_pieces(tokens),
        token_scores=details.log_probabilities if options.return_token_scores else None,
        token_alternatives=_in_pieces(details.alternatives, tokenizer) if options.num_token_alternatives else None,
        alignment=_alignment(attention) if options.return_alignments and attention is not None else None,
        attention=attention if options.return_attention else None,
    )


def _in_pieces(alternatives: Sequence[Sequence[tuple[int, float]]], tokenizer: Tokenizer) -> list[list[TokenScore]]:
    return [[TokenScore(tokenizer.target_pieces([token])[0], score) for token, score in best] for best in alternatives]


def _alignment(attention: NDArray[np.float32]) -> list[int]:
    """Return the source token that each target token attends to most, except the end, where attention rests."""
    but_the_end = max(attention.shape[1] - 1, 1)  # an empty source has nothing else
    return [int(place) for place in attention[:, :but_the_end].argmax(axis=1)]
