"""BLEU and chrF of the engines' answers, all decoded by the same tokenizer."""

from collections.abc import Sequence

from sacrebleu.metrics import BLEU, CHRF

from server.text.tokenizers.tokenizer import Tokenizer


class Scorer:
    """sacrebleu's defaults: BLEU is 13a, cased and detokenized, chrF is chrF2."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._bleu, self._chrf = BLEU(), CHRF()
        self._has_scored = False

    def score(self, outputs: Sequence[Sequence[int]], references: list[str]) -> tuple[float, float]:
        """Return BLEU and chrF of token ids against one reference each."""
        self._has_scored = True
        texts = [self._tokenizer.decode(output) for output in outputs]
        bleu = self._bleu.corpus_score(texts, [references]).score
        return bleu, self._chrf.corpus_score(texts, [references]).score

    def signatures(self) -> list[str]:
        """Return the signatures to quote with the scores; empty before the first score."""
        if not self._has_scored:
            return []
        return [f"BLEU {self._bleu.get_signature()}", f"chrF {self._chrf.get_signature()}"]
