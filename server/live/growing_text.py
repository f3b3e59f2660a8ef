"""A text that is still growing, and its translation: what is committed, and what may follow."""

import os.path
from collections.abc import Sequence
from dataclasses import dataclass

from server.interface.errors import EngineFailed, InvalidRequest
from server.interface.request import Tokens
from server.live.decoding import Decoded, LiveModel, source_words
from server.live.policies import Policy
from server.text.joining import between
from server.text.segmentation.sentences import divided, sentences
from server.text.unicode_text import replace_lone_surrogates


@dataclass(frozen=True, slots=True)
class Piece:
    """Committed text and the range of the source, in characters of all that was sent, that it rests on."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Update:
    """Pieces that were committed, and a draft of what may follow them."""

    pieces: Sequence[Piece]
    draft: str


@dataclass(frozen=True, slots=True)
class LiveSentence:
    """A sentence of the text that is not settled. `start` and `end` are in that text; the end has the white space.

    The translation goes on after the `prefix`. A `closed` sentence gets no further words.
    """

    text: str
    start: int
    end: int
    prefix: Tokens
    closed: bool

    @property
    def has_words(self) -> bool:
        """Whether there is anything to translate."""
        return any(map(str.isalpha, self.text))


class GrowingText:
    """The source of one session from its first open sentence on, and what of its translation is committed.

    Committed text is never changed: source that it rests on may change, and what was not committed follows the change.
    """

    def __init__(self, source: str, target: str, policy: Policy) -> None:
        self.settled = 0  # characters of the source whose translation is complete
        self.text = ""  # the others
        self._source = source
        self._target = target
        self._policy = policy
        self._num_final = 0  # characters of the text that are final
        self._prefix: Tokens = ()  # of the first sentence
        self._shown = ""
        self._before: Decoded | None = None
        self._gap = ""  # white space before the next sentence
        self._last = ""  # translation of the sentence before

    def append(self, text: str) -> None:
        """Add to the end."""
        self.text += replace_lone_surrogates(text)

    def replace_from(self, start: int, text: str) -> None:
        """Replace all from this character of the whole source on. What is settled stays.

        Raises `InvalidRequest` for a start beyond the end.
        """
        length = self.settled + len(self.text)
        if not 0 <= start <= length:
            raise InvalidRequest(f"`replace_from` must be from 0 to {length}, the characters sent. Given: {start}")
        num_kept = max(start - self.settled, 0)
        self.text = self.text[:num_kept] + replace_lone_surrogates(text)[max(self.settled - start, 0) :]
        self._num_final = min(self._num_final, num_kept)

    def finish(self) -> None:
        """Make everything so far final: no word will follow in its last sentence."""
        self._num_final = len(self.text)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left that could be committed without further text."""
        return not self.text.strip() or (not self._num_final and self._before is not None)

    def sentences(self, model: LiveModel) -> list[LiveSentence]:
        """Return the sentences that are not settled, the last of which may be open."""
        found: list[LiveSentence] = []
        position = 0
        for part, is_final in ((self.text[: self._num_final], True), (self.text[self._num_final :], False)):
            segments = [
                piece
                for sentence in sentences(part, self._source)
                for piece in divided(sentence, model.fits, self._source)
            ]
            for index, segment in enumerate(segments):
                start = position + len(segment.before)
                position = start + len(segment.text) + len(segment.after)
                is_last = index == len(segments) - 1
                closed = is_final or not is_last or self._has_ended(segment.text, segment.after)
                if segment.text:
                    prefix = () if found else self._prefix
                    found.append(LiveSentence(segment.text, start, position, prefix, closed))
        return found

    def _has_ended(self, text: str, after: str) -> bool:
        """Return whether a sentence has ended before any word follows: it would if that had a capital."""
        if "\n" in after:
            return True
        probe = f"{text}{after}A"
        return bool(after) and len(sentences(probe, self._source)) > 1

    def take(self, decoded_of: Sequence[tuple[LiveSentence, Decoded | None]], decoded_text: str) -> Update:
        """Commit what may be committed of sentences that were decoded when the text was `decoded_text`."""
        num_same = len(os.path.commonprefix((decoded_text, self.text)))
        pieces: list[Piece] = []
        num_settled = 0
        draft = ""
        for sentence, decoded in decoded_of:
            lead = between(self._gap + self.text[num_settled : sentence.start], self._last, self._target)
            lead = lead if self._last and not self._shown else ""
            if sentence.closed and sentence.end <= num_same:
                text = sentence.text if decoded is None else decoded.text
                self._commit(pieces, sentence, text, lead, sentence.end)
                self._gap = decoded_text[sentence.start + len(sentence.text) : sentence.end]
                self._last = text or self._last
                self._prefix, self._shown, self._before = (), "", None
                num_settled = sentence.end
                continue
            if decoded is not None:
                draft = self._commit_open(pieces, sentence, decoded, lead, num_same)
            break
        self.settled += num_settled
        self.text = self.text[num_settled:]
        self._num_final = max(self._num_final - num_settled, 0)
        return Update(pieces, draft)

    def _commit_open(
        self, pieces: list[Piece], sentence: LiveSentence, decoded: Decoded, lead: str, num_same: int
    ) -> str:
        """Commit the beginning of an open sentence, and return the draft of its rest."""
        words = source_words(sentence.text)
        num_known = sum(sentence.start + end <= num_same for _, end in words)
        continuation = decoded.continuation
        before = None if self._before is None else self._before.continuation
        num_final = self._policy.num_final(continuation, num_known, before)
        num_final = decoded.border(num_final, len(sentence.prefix))
        if num_final > len(sentence.prefix):
            end = decoded.starts[num_final] if num_final < len(decoded.starts) else len(decoded.text)
            text = decoded.text[:end].rstrip()
            resting = continuation.attended[len(sentence.prefix) : num_final]
            last = sentence.start + words[max(resting)][1]
            self._commit(pieces, sentence, text, lead, last, sentence.start + words[min(resting)][0])
            self._prefix = continuation.tokens[:num_final]
            lead = ""
        self._before = decoded
        return (lead if not self._shown else "") + decoded.text[len(self._shown) :]

    def _commit(
        self, pieces: list[Piece], sentence: LiveSentence, text: str, lead: str, end: int, start: int | None = None
    ) -> None:
        if not text.startswith(self._shown):
            raise EngineFailed("translations of this model cannot be continued: later tokens change earlier text")
        added = text[len(self._shown) :]
        if added:
            first = sentence.start if start is None else start
            pieces.append(Piece(lead + added, self.settled + first, self.settled + end))
        self._shown = text
