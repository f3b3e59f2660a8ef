"""Store of answers by sentence, bounded by number and by bytes of keys and answers together."""

from collections import OrderedDict

from server.workers.coalescing import Answer
from server.workers.sentence_keys import SentenceKey

_ENTRY_BYTES = 256  # an entry with an empty source, approximately


class AnswerStore:
    """Answers, least recently used first out. `num_bytes` counts keys and answers, approximately."""

    def __init__(self, max_sentences: int, max_bytes: int) -> None:
        self._max_sentences = max_sentences
        self._max_bytes = max_bytes
        self._answers: OrderedDict[SentenceKey, tuple[Answer, int]] = OrderedDict()
        self.num_bytes = 0

    def __len__(self) -> int:
        """Return the number of answers."""
        return len(self._answers)

    def get(self, key: SentenceKey) -> Answer | None:
        """Return the answer of a sentence, which becomes the most recently used one, or None."""
        if (entry := self._answers.get(key)) is None:
            return None
        self._answers.move_to_end(key)
        return entry[0]

    def add(self, key: SentenceKey, answer: Answer) -> None:
        """Add an answer, unless it exceeds the limit by itself, and evict others for it."""
        num_bytes = key_bytes(key) + answer.num_bytes
        self._remove(key)
        if num_bytes > self._max_bytes or not self._max_sentences:
            return
        self._answers[key] = answer, num_bytes
        self.num_bytes += num_bytes
        while self.num_bytes > self._max_bytes or len(self._answers) > self._max_sentences:
            self._remove(next(iter(self._answers)))

    def clear(self) -> None:
        """Remove all answers."""
        self._answers.clear()
        self.num_bytes = 0

    def _remove(self, key: SentenceKey) -> None:
        if (entry := self._answers.pop(key, None)) is not None:
            self.num_bytes -= entry[1]


def key_bytes(key: SentenceKey) -> int:
    """Return the approximate size of a key and its entry. `SentenceKeys` counts the parameters."""
    return _ENTRY_BYTES + len(key)
