"""Loop that runs a search without engine or cache."""

from collections.abc import Sequence

import numpy as np

from server.engine.decoding.search import Search
from server.engine.kv_cache import fill_holes
from server.interface.request import Hypothesis, SentenceParams
from tests.fakes.engine import Table, Tokens
from tests.fakes.reference_search import SOURCE


def drive(search: Search, tables: Sequence[Table], params: Sequence[SentenceParams]) -> list[list[Hypothesis]]:
    """Return the hypotheses of several requests that start together, one table each."""
    for one in params:
        search.add(one)
    prefixes: list[list[Tokens]] = [[()] * search.beam_size for _ in tables]
    here = list(range(len(tables)))  # which request is at which place of the search
    answers: dict[int, list[Hypothesis]] = {}
    while here:
        log_probs = np.stack([np.stack([tables[each](SOURCE, prefix) for prefix in prefixes[each]]) for each in here])
        tokens = np.argsort(-log_probs, axis=2, kind="stable")[:, :, : search.num_candidates]
        choice = search.advance(tokens, np.take_along_axis(log_probs, tokens, axis=2))
        for place, each in enumerate(here):
            steps = zip(choice.parents[place].tolist(), choice.tokens[place].tolist(), strict=True)
            prefixes[each] = [(*prefixes[each][parent], token) for parent, token in steps]
            if choice.finished[place]:
                answers[each] = search.hypotheses(place)
        if choice.finished.any():
            holes, movers = fill_holes(~choice.finished)
            for hole, mover in zip(holes.tolist(), movers.tolist(), strict=True):
                here[hole] = here[mover]
            del here[int(np.count_nonzero(~choice.finished)) :]
            search.remove(holes.tolist(), movers.tolist(), len(here))
    return [answers[each] for each in range(len(tables))]
