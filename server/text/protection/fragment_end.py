"""The end of a translated fragment of a sentence, which models write as that of a whole one."""

_ENDS = ".!?… "
_ENDS_BEFORE_MARKS = f",;:{_ENDS}"
_MARKS = ".,;:!?…)]"  # and nothing
_PAIRS = (")", "]", "}", '"“”„«»')


def without_end(answer: str, source: str, behind: str) -> str:
    """Return an answer without the marks that a model adds to a `source` that ends with a word.

    `behind` is the text that follows the fragment. Models also close brackets and quotation marks that are open in it;
    those of the text stand behind the fragment. A comma before a word may be one that the target language needs.
    """
    ends = _ENDS_BEFORE_MARKS if behind.lstrip()[:1] in _MARKS else _ENDS
    text = answer.rstrip(ends)
    while any(text.endswith(tuple(marks)) and _count(text, marks) > _count(source, marks) for marks in _PAIRS):
        text = text[:-1].rstrip(ends)
    return text or answer


def _count(text: str, marks: str) -> int:
    return sum(map(text.count, marks))
