"""Reference implementation of options in plain Python: a table of log-probabilities changed for one prefix."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from server.interface.request import SentenceParams
from tests.fakes.engine import END, FakeRunner, LogProbs, Table, Tokens, cross_query, log_normalizer
from tests.fakes.reference_search import Scored, beam, greedy


def expected(table: Table, source: Tokens, params: SentenceParams) -> list[Scored]:
    """Return answers with their target prefix, the model's own log-probability and the score of the ranking."""
    ruled, bare = under_rules(table, source, params), replace(params, target_prefix=())
    if params.beam_size == 1:
        found = [greedy(ruled, bare)]
    else:
        found = beam(ruled, bare, bonus=lambda tokens: coverage_bonus(source, tokens, params))
    answers = []
    for tokens, _, score in found:
        generated = tokens if len(tokens) == params.max_new_tokens else (*tokens, END)
        own = own_log_probability(table, source, params.target_prefix, generated)
        if params.beam_size == 1:
            score = own / len(generated) ** params.options.length_penalty
        answers.append(((*params.target_prefix, *tokens), own, score))
    return answers


def own_log_probability(table: Table, source: Tokens, prompt: Tokens, generated: Tokens) -> float:
    """Return the model's log-probability of these tokens after a prompt."""
    return math.fsum(
        float(table(source, (*prompt, *generated[:place]))[token]) for place, token in enumerate(generated)
    )


def under_rules(table: Table, source: Tokens, params: SentenceParams) -> Table:
    """The table of what follows the target prefix, for whatever source it is asked, with every rule applied."""
    is_beam = params.beam_size > 1

    def ruled(_: Tokens, generated: Tokens) -> LogProbs:
        prefix = (*params.target_prefix, *generated)
        shift = 0.0 if is_beam else log_normalizer(source, prefix)
        scores = [float(score) + shift for score in table(source, prefix)]
        for token in set(prefix):
            scores[token] *= (
                params.options.repetition_penalty if scores[token] < 0 else 1 / params.options.repetition_penalty
            )
        for token in range(len(scores)):
            if is_forbidden(token, prefix, len(generated), params):
                scores[token] = -math.inf
        return np.array(scores, np.float32)

    return ruled


def is_forbidden(token: int, prefix: Tokens, num_generated: int, params: SentenceParams) -> bool:
    """Whether any rule speaks against this token."""
    longer, size = (*prefix, token), params.options.no_repeat_ngram_size
    ngrams = [longer[place : place + size] for place in range(len(longer) - size + 1)] if size else []
    return (
        (token == END and num_generated < params.min_new_tokens)
        or token in params.options.suppress_tokens
        or any(longer[-len(phrase) :] == phrase for phrase in params.suppress_phrases)
        or (bool(ngrams) and ngrams[-1] in ngrams[:-1])
    )


def attention(source: Tokens, prefix: Tokens) -> list[float]:
    """Where the fake model looks for what follows a prefix."""
    weights = [math.exp(cross_query(prefix) * key * FakeRunner.attention_scale) for key in source]
    return [weight / sum(weights) for weight in weights]


def coverage_bonus(source: Tokens, tokens: Sequence[int], params: SentenceParams) -> float:
    """The coverage penalty, Wu et al. 2016, equation 14, of tokens with their end."""
    answer = (*params.target_prefix, *tokens)
    matrix = [attention(source, answer[:place]) for place in range(len(answer))]
    received = [sum(column) for column in zip(*matrix, strict=True)]
    return params.options.coverage_penalty * sum(math.log(min(each, 1.0)) for each in received)
