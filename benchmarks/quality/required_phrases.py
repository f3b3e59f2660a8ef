"""Places of required phrases in translations: nouns of references that the plain translations lack.

    python -m benchmarks.quality.required_phrases BUNDLE --data FILE.tsv [--number 200] [--beam-size 4] [--seed 1]

Each line of the file is a source, a tab and a reference. A phrase is inside if it stands between word boundaries and no
new sentence begins in the translation. BLEU is over the same sentences.
"""

import random
from collections import Counter
from pathlib import Path
from typing import Annotated

import regex
import typer
from sacrebleu.metrics import BLEU

from benchmarks.in_process import InProcessEngine
from benchmarks.workloads import read_lines, target_language
from bundle.loading import load_bundle
from server.interface.request import SentenceParams
from server.text.tokenizers.registry import open_tokenizer

_TERM = regex.compile(r"(?<=\s)\p{Lu}\p{Ll}{3,}(?=[\s.,;:!?])")
_SENTENCE_END = regex.compile(r"[.!?…]+[\"“”’')]*")


def main(
    bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    data: Annotated[Path, typer.Option(metavar="FILE.tsv")],
    number: int = 200,
    beam_size: int = 4,
    seed: int = 1,
    target: Annotated[str | None, typer.Option(help="target language, for a bundle with several")] = None,
) -> None:
    """Print how many phrases are inside the sentence, behind it, or only part of another word, and the BLEU."""
    bundle = load_bundle(bundle_folder)
    tokenizer, engine, language = open_tokenizer(bundle), InProcessEngine(bundle), target_language(bundle, target)
    drawn = random.Random(seed)  # noqa: S311 - the same seed gives the same sentences
    pairs = [pair for pair in (line.split("\t") for line in read_lines(data, None)) if _is_one_sentence(pair[1])]
    pairs = drawn.sample(pairs, min(len(pairs), 5 * number))
    params = SentenceParams(beam_size=beam_size, max_new_tokens=bundle.config.shapes.max_target_tokens)
    sources = [tokenizer.encode(source, language) for source, _ in pairs]
    plain = [tokenizer.decode(done.hypotheses[0].token_ids) for done in engine.decode(sources, params)]
    chosen = []
    for index, ((_, reference), translation) in enumerate(zip(pairs, plain, strict=True)):
        terms = [term for term in _TERM.findall(reference) if term not in translation]
        if terms:
            chosen.append((index, drawn.choice(terms)))
    chosen = chosen[:number]
    phrases = [(tuple(tokenizer.encode_target(term)),) for _, term in chosen]
    all_params = [
        SentenceParams(beam_size=beam_size, max_new_tokens=params.max_new_tokens, required_phrases=phrase)
        for phrase in phrases
    ]
    done = engine.decode_each([sources[index] for index, _ in chosen], all_params)
    texts = [tokenizer.decode(completion.hypotheses[0].token_ids) for completion in done]
    counts = Counter(_place(term, text) for (_, term), text in zip(chosen, texts, strict=True))
    references = [[pairs[index][1] for index, _ in chosen]]
    bleu = BLEU()
    print("| sentences | inside | behind | in another word | BLEU | BLEU without phrases |\n|---|---|---|---|---|---|")
    print(
        f"| {len(chosen)} | {counts['inside']} | {counts['behind']} | {counts['in another word']} "
        f"| {bleu.corpus_score(texts, references).score:.1f} "
        f"| {bleu.corpus_score([plain[index] for index, _ in chosen], references).score:.1f} |"
    )


def _is_one_sentence(text: str) -> bool:
    ends = list(_SENTENCE_END.finditer(text))
    return len(ends) == 1 and ends[0].end() == len(text)


def _place(term: str, translation: str) -> str:
    if not regex.search(rf"(?<!\w){regex.escape(term)}(?!\w)", translation):
        return "in another word"
    end = _SENTENCE_END.search(translation)
    return "inside" if end is None or end.end() == len(translation) else "behind"


if __name__ == "__main__":
    typer.run(main)
