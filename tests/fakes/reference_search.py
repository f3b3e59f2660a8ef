"""Reference implementations of greedy, beam and exhaustive search, for one request in plain Python."""

import itertools
import math
from collections.abc import Callable

from server.interface.request import SentenceParams
from tests.fakes.engine import END, Table, Tokens

Scored = tuple[Tokens, float, float]  # tokens without the end, log-probability, score

SOURCE = (7, 8, END)


def greedy(table: Table, params: SentenceParams, forced_end: bool = False) -> Scored:
    """Return the most likely tokens until the end or the limit."""
    prefix: Tokens = ()
    total = 0.0
    while len(prefix) < params.max_new_tokens and END not in prefix:
        token, gained = _continuations(table, prefix, params, forced_end)[0]
        prefix, total = (*prefix, token), total + gained
    return _scored(prefix, total, params)


def beam(
    table: Table,
    params: SentenceParams,
    forced_end: bool = False,
    bonus: Callable[[Tokens], float] = lambda _: 0.0,
) -> list[Scored]:
    """Return the hypotheses of the rules in server/engine/decoding/beam_search.py; `bonus` is added to their scores."""
    num_held = max(math.floor(params.beam_size * params.options.patience + 0.5), 1)
    running: list[tuple[Tokens, float]] = [((), 0.0)]
    held: list[Scored] = []
    for length in range(1, params.max_new_tokens + 1):
        continuations = [
            ((*prefix, token), total + gained)
            for prefix, total in running
            for token, gained in _continuations(table, prefix, params, forced_end)
        ]
        best = sorted(continuations, key=lambda each: -each[1])[: 2 * params.beam_size]
        at_limit = length == params.max_new_tokens
        running = []
        for rank, (tokens, total) in enumerate(best):
            if tokens[-1] != END and not at_limit:
                running.append((tokens, total))
            elif rank < params.beam_size:
                answer, gained, score = _scored(tokens, total, params)
                held.append((answer, gained, score + bonus(tokens)))
        held = sorted(held, key=lambda each: -each[2])[:num_held]
        running = running[: params.beam_size]
        if not running:
            break
        if len(held) == num_held:
            best_possible = running[0][1] / length**params.options.length_penalty
            if params.options.early_stopping or best_possible <= held[-1][2]:
                break
    return held[: params.num_hypotheses]


def everything(table: Table, vocab: int, params: SentenceParams) -> list[Scored]:
    """Return every sequence that ends within the limit or reaches it, best first."""
    limit = params.max_new_tokens
    sequences: list[Tokens] = [
        (*prefix, END) for length in range(limit) for prefix in itertools.product(range(1, vocab), repeat=length)
    ]
    sequences += itertools.product(range(1, vocab), repeat=limit)
    scored = []
    for tokens in sequences:
        gains = [float(table(SOURCE, tokens[:place])[token]) for place, token in enumerate(tokens)]
        scored.append(_scored(tokens, math.fsum(gains), params))
    return sorted(scored, key=lambda each: -each[2])


def _continuations(table: Table, prefix: Tokens, params: SentenceParams, forced_end: bool) -> list[tuple[int, float]]:
    """Return tokens and their log-probabilities, best first; of equals the smaller id."""
    if forced_end and len(prefix) + 1 == params.max_new_tokens:
        return [(END, 0.0)]
    log_probs = table(SOURCE, prefix).tolist()
    possible = [(token, gained) for token, gained in enumerate(log_probs) if gained > -math.inf]
    return sorted(possible, key=lambda each: -each[1])


def _scored(tokens: Tokens, total: float, params: SentenceParams) -> Scored:
    answer = tokens[:-1] if tokens[-1] == END else tokens
    return answer, total, total / len(tokens) ** params.options.length_penalty
