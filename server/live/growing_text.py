"""A text that is still growing, and its translation: what is committed, and what may follow."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from server.interface.errors import EngineFailed, InvalidRequest
from server.interface.request import Tokens
from server.live.decoding import Decoded, LiveModel, LiveSentence
from server.live.policies import Policy
from server.live.reading import Mask
from server.text.joining import between
from server.text.protection.word_alignment import Range
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
    """Pieces that were committed, and a draft of what may follow them, from so many characters of the source."""

    pieces: Sequence[Piece]
    draft: str
    read: int


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
        self._shown = ""  # its text, with masks
        self._held: tuple[Mask, ...] = ()  # those masks
        self._written = ""  # what was committed of the first sentence: the same with the spans
        self._before: Decoded | None = None
        self._gap = ""  # white space behind the sentence before
        self._last = ""  # translation of the sentence before
        self._lead = ""  # white space before the translation of this sentence

    def append(self, text: str) -> None:
        """Add to the end."""
        self.text += replace_lone_surrogates(text)

    def check_start(self, start: int) -> None:
        """Raise `InvalidRequest` for a replacement that would begin beyond the end."""
        length = self.settled + len(self.text)
        if not 0 <= start <= length:
            raise InvalidRequest(f"`replace_from` must be from 0 to {length}, the characters sent. Given: {start}")

    def replace_from(self, start: int, text: str) -> None:
        """Replace all from this character of the whole source on. What is settled stays."""
        num_kept = max(start - self.settled, 0)
        self.text = self.text[:num_kept] + replace_lone_surrogates(text)[max(self.settled - start, 0) :]
        self._num_final = min(self._num_final, num_kept)

    def finish(self) -> None:
        """Make everything so far final: no word will follow in its last sentence."""
        self._num_final = len(self.text)

    def continue_with(self, model: LiveModel) -> None:
        """Go on with another model, which is given the committed text as its own tokens."""
        self._prefix = tuple(model.tokenizer.encode_target(self._written)) if self._written else ()
        self._shown = model.tokenizer.decode(self._prefix)
        self._held, self._before = (), None

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
                    prefix, held = ((), ()) if found else (self._prefix, self._held)
                    reading = model.read(segment.text, held)
                    found.append(LiveSentence(segment.text, start, position, reading, prefix, closed))
        return found

    def _has_ended(self, text: str, after: str) -> bool:
        """Return whether a sentence has ended before any word follows: it would if that had a capital."""
        if "\n" in after:
            return True
        probe = f"{text}{after}A"
        return bool(after) and len(sentences(probe, self._source)) > 1

    def take(self, sentences_decoded: Sequence[tuple[LiveSentence, Decoded | None]], then: str) -> Update:
        """Commit what may be committed of sentences that were decoded when the text was `then`.

        A sentence without words is its own translation. What has changed since counts as not known yet.
        """
        num_same = _common_length(then, self.text)
        pieces: list[Piece] = []
        num_settled = 0
        draft = ""
        for sentence, decoded in sentences_decoded:
            gap = self._gap + then[num_settled : sentence.start]
            self._lead = between(gap, self._last, self._target) if self._last else ""
            if not (sentence.closed and sentence.end <= num_same):
                if decoded is not None:
                    draft = self._take_open(pieces, sentence, decoded, num_same)
                break
            if decoded is not None:
                self._commit(pieces, sentence, decoded.text, _resting(sentence, decoded, len(decoded.starts)))
                self._commit_lost(pieces, sentence, decoded)
            elif not self._shown:  # else a revision has removed the words
                self._write(pieces, sentence.text, (sentence.start, sentence.start + len(sentence.text)))
            self._gap = then[sentence.start + len(sentence.text) : sentence.end]
            self._last = self._written or self._last
            self._prefix, self._shown, self._held, self._written, self._before = (), "", (), "", None
            num_settled = sentence.end
        self.settled += num_settled
        self.text = self.text[num_settled:]
        self._num_final = max(self._num_final - num_settled, 0)
        offset = self.settled - num_settled
        moved = [Piece(each.text, offset + each.start, offset + each.end) for each in pieces]
        return Update(moved, draft, offset + len(then))

    def _take_open(self, pieces: list[Piece], sentence: LiveSentence, decoded: Decoded, num_same: int) -> str:
        """Commit the beginning of an open sentence, and return the draft of its rest."""
        # The last word may go on until something is behind it.
        num_words = sum(sentence.start + end < num_same for _, end in sentence.reading.words)
        continuation, num_before = decoded.continuation, len(sentence.prefix)
        before = None if self._before is None else self._before.continuation
        num_final = self._policy.num_final(continuation, num_words, before)
        of_known_words = takewhile(lambda word: word < num_words, continuation.attended[num_before:])
        num_final = min(num_final, num_before + sum(1 for _ in of_known_words))
        for (place, _), mask in decoded.signs:
            if place >= len(self._shown) and sentence.start + mask.end >= num_same:
                num_final = min(num_final, bisect_left(decoded.starts, place))
        num_final = decoded.border(num_final, num_before)
        if num_final > num_before:
            self._commit(pieces, sentence, decoded.beginning(num_final), _resting(sentence, decoded, num_final))
            self._prefix = continuation.tokens[:num_final]
        self._before = decoded
        draft = sentence.reading.restored(decoded.text[len(self._shown) :])
        return (self._lead if not self._written else "") + draft

    def _commit(self, pieces: list[Piece], sentence: LiveSentence, text: str, resting: Range) -> None:
        """Commit the rest of a text with masks that begins with what is shown."""
        if not text.startswith(self._shown):
            raise EngineFailed("translations of this model cannot be continued: later tokens change earlier text")
        self._write(pieces, sentence.reading.restored(text[len(self._shown) :]), resting)
        self._shown = text
        self._held = tuple(each for each in sentence.reading.masks if each.sign in text)

    def _commit_lost(self, pieces: list[Piece], sentence: LiveSentence, decoded: Decoded) -> None:
        """Commit the spans that the translation of a closed sentence lacks, behind it."""
        written = [mask.sign for _, mask in decoded.signs]
        for mask in sentence.reading.masks:
            if mask.end and mask.sign not in written:
                end = sentence.start + mask.end
                self._write(pieces, f" {mask.text}", (end - len(mask.text), end))

    def _write(self, pieces: list[Piece], text: str, resting: Range) -> None:
        if text:
            pieces.append(Piece(self._lead * (not self._written) + text, *resting))
        self._written += text


def _resting(sentence: LiveSentence, decoded: Decoded, num_tokens: int) -> Range:
    """Return the source words that the tokens after the prefix attend to, from the first to the last."""
    words = sentence.reading.words
    attended = decoded.continuation.attended[len(sentence.prefix) : num_tokens] or [0, len(words) - 1]
    return sentence.start + words[min(attended)][0], sentence.start + words[max(attended)][1]


def _common_length(one: str, other: str) -> int:
    if other.startswith(one):  # as nearly always: text was added
        return len(one)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
