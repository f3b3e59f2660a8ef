"""Microseconds of the text pipeline by kind of text: segment, protect, tokenize, detokenize, restore, join."""

import asyncio
import time
from collections.abc import Mapping

from benchmarks.service.echo import EchoEngine
from bundle.loading import Bundle
from server.interface.decoding_options import DecodingOptions
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import TextFormat, TranslationRequest

_SENTENCES = (
    "The old man sat at the window and looked at the rain.",
    "Where is the station?",
    "She had never seen so many people in the small church before.",
    "I would like to go home now, please.",
)
TEXTS: Mapping[str, tuple[TextFormat, tuple[str, ...]]] = {
    "plain sentences": ("text", _SENTENCES),
    "plain paragraph": ("text", (" ".join(_SENTENCES),)),
    "a number": ("text", tuple(f"{each} There were 25 of them." for each in _SENTENCES)),
    "placeholders": ("text", tuple(f"{{name}}: {each}" for each in _SENTENCES)),
    "Markdown": ("text", tuple(f"- **{each}** See `main.py`." for each in _SENTENCES)),
    "HTML": ("html", tuple(f"<p>{each} <b>Good</b> <a href='x'>morning</a>.</p>" for each in _SENTENCES)),
}
_ROUNDS = 50
_REPETITIONS = 5


def text_table(bundle: Bundle, source: str, target: str) -> str:
    """Return a table of processor time for each sentence, the best of several repetitions."""
    pipeline = Pipeline(EchoEngine(bundle), TranslationLimits())
    rows = ["| text | calls with one text, us a sentence | calls with 64 texts, us a sentence |", "|---|---|---|"]
    for name, (format_, texts) in TEXTS.items():
        cells = []
        for num_texts in (1, 64):
            repeated = (texts * num_texts)[: max(num_texts, 1)]
            request = TranslationRequest(repeated, source, target, DecodingOptions(beam_size=1), format=format_)
            cells.append(f"{asyncio.run(_microseconds(pipeline, request)):.0f}")
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


async def _microseconds(pipeline: Pipeline, request: TranslationRequest) -> float:
    rounds = max(_ROUNDS // len(request.texts), 1)
    best = float("inf")
    for _ in range(_REPETITIONS):
        start = time.process_time()
        for _ in range(rounds):
            result = await pipeline.translate(request)
        best = min(best, (time.process_time() - start) / rounds / max(result.sentence_tokens.num_sentences, 1))
    return best * 1e6
