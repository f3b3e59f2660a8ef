"""Requests for the sentences of texts that have nothing to protect."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from server.interface.interruption import checkpoint
from server.interface.request import Request, TokenIds
from server.text.negation import Negation, NegationRules
from server.text.protection.capitals import is_surely_usual
from server.text.protection.truecaser import Truecaser
from server.text.segmentation.sentences import Segment, divided, sentences
from server.text.source_check import KeepReason
from server.text.unicode_text import replace_lone_surrogates
from server.translation.reading import negation_rules_of
from server.translation.recovery import Recovery
from server.translation.sentence_encoder import SentenceEncoder
from server.translation.source_checks import RequestCheck
from server.translation.types import KeptSentence, TranslationRequest

_SENTENCES_AT_ONCE = 64  # half a millisecond


@dataclass(slots=True)
class EncodedTexts:
    """Parts of each text: white space and text without words as they are, and a request for each sentence.

    `sources` has the text's index and the sentence of each of the `requests`, `kept` the sentences of each text that
    are not decoded. `negations` are those of sentences that have one, by the id of the request, which returns all its
    hypotheses.
    """

    parts: list[list[str | Request]]
    requests: list[Request]
    num_splits: int
    seed: int | None
    recovery: Recovery
    sources: list[tuple[int, str]] = field(default_factory=list)
    kept: dict[int, list[KeptSentence]] = field(default_factory=dict)
    negations: dict[int, Negation] = field(default_factory=dict)


class PlainTextEncoder:
    """Encodes the texts of one call."""

    def __init__(
        self,
        request: TranslationRequest,
        encoder: SentenceEncoder,
        truecaser: Truecaser,
        max_source_tokens: int,
        check: RequestCheck | None,
        recovery: Recovery,
    ) -> None:
        self._request = request
        self._encoder = encoder
        self._truecaser = truecaser
        self._max_tokens = max_source_tokens
        self._check = check
        self._negations: NegationRules | None = negation_rules_of(request)
        self._encoded = EncodedTexts([], [], 0, encoder.seed, recovery)

    def encode(self) -> EncodedTexts | None:
        """Return the encoded texts, or None if a sentence has unusual capitals."""
        language = self._request.source
        texts = [sentences(replace_lone_surrogates(text), language) for text in self._request.texts]
        words = [segment.text for segments in texts for segment in segments if segment.has_words]
        reasons = {} if self._check is None else self._check.reasons(words)
        if reasons:
            words = [text for text in words if text not in reasons]
        if not self._have_usual_casing(words):
            return None
        tokens = self._tokens(words)
        for index, segments in enumerate(texts):
            num_requests = len(self._encoded.requests)
            self._encoded.parts.append([])
            for segment in segments:
                source = tokens.get(segment.text)
                if source is None or len(source) <= self._max_tokens:
                    self._add(index, segment, source)
                elif not self._add_pieces(index, segment):
                    return None
            kept = [KeptSentence(each.text, reasons[each.text]) for each in segments if each.text in reasons]
            if not kept and self._check is not None and len(self._encoded.requests) == num_requests:
                visible = replace_lone_surrogates(self._request.texts[index]).strip()
                kept = [KeptSentence(visible, KeepReason.NO_WORDS)] if visible else []
            if kept:
                self._encoded.kept[index] = kept
        return self._encoded

    def _have_usual_casing(self, texts: Sequence[str]) -> bool:
        has_unusual_casing = self._truecaser.has_unusual_casing
        return not any(not is_surely_usual(text) and has_unusual_casing(text) for text in texts)

    def _tokens(self, texts: Sequence[str]) -> dict[str, TokenIds]:
        """Return the tokens of sentences, encoded as many at a time as delay no interruption."""
        tokens: dict[str, TokenIds] = {}
        for begin in range(0, len(texts), _SENTENCES_AT_ONCE):
            checkpoint()
            some = texts[begin : begin + _SENTENCES_AT_ONCE]
            tokens.update(zip(some, self._encoder.tokens_of_all(some), strict=True))
        return tokens

    def _add(self, index: int, segment: Segment, source: TokenIds | None) -> None:
        """Add a segment of the text with this index, with its tokens if it has words."""
        parts = self._encoded.parts[index]
        if segment.before:
            parts.append(segment.before)
        if source is None:
            parts.append(segment.text)
        else:
            negation = None if self._negations is None else self._negations.of(segment.text)
            request = self._encoder.plain_request(index, segment.text, source, returns_beams=negation is not None)
            if negation is not None:
                self._encoded.negations[request.id] = negation
            parts.append(request)
            self._encoded.requests.append(request)
            self._encoded.sources.append((index, segment.text))
        if segment.after:
            parts.append(segment.after)

    def _add_pieces(self, index: int, sentence: Segment) -> bool:
        """Add the pieces of a sentence that is too long for the model; False if one has unusual capitals."""
        sources: dict[str, TokenIds] = {}

        def fits(part: str) -> bool:
            checkpoint()
            if not any(map(str.isalnum, part)):
                return True  # not decoded, so it may be of any length
            source = self._encoder.tokens(part)
            if len(source) > self._max_tokens:
                return False
            sources[part] = source
            return True

        for piece in divided(sentence, fits, self._request.source):
            if piece.has_words and not self._have_usual_casing((piece.text,)):
                return False
            if piece.has_words and piece.text not in sources:  # nothing makes it fit
                sources[piece.text] = self._encoder.tokens(piece.text)
            self._add(index, piece, sources.get(piece.text) if piece.has_words else None)
            self._encoded.num_splits += piece.continues
        return True
