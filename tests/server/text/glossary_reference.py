"""The glossary search by regular expressions, which `Glossary` is compared with."""

from collections.abc import Mapping

import regex

_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")


def reference_target_terms(entries: Mapping[str, str], sentence: str) -> tuple[str, ...]:
    """Return the target terms of a sentence, found by one pattern of all terms."""
    by_folded: dict[str, list[str]] = {}
    for term in entries:
        by_folded.setdefault(term.lower(), []).append(term)
    lowered = sentence.lower()
    if len(lowered) != len(sentence):
        lowered = sentence
    found: dict[int, str] = {}
    for is_unspaced, pattern in ((False, r"(?<!\w)\L<terms>(?!\w)"), (True, r"\L<terms>")):
        terms = [term for term in by_folded if bool(_UNSPACED.search(term)) == is_unspaced]
        last = 0
        for match in regex.finditer(pattern, lowered, overlapped=True, terms=terms) if terms else ():
            target = _target(entries, by_folded[match.group()], match.group(), sentence[slice(*match.span())])
            if match.start() >= last and target is not None:
                found[match.start()] = target
                last = match.end()
    return tuple(dict.fromkeys(target for _, target in sorted(found.items())))


def _target(entries: Mapping[str, str], terms: list[str], folded: str, written: str) -> str | None:
    is_in_caps = written.isupper() and len(written) > 1
    if written in terms:
        return entries[written]
    if folded in terms and not is_in_caps:
        return entries[folded]
    if is_in_caps:
        found = next((term for term in terms if term.upper() == written), None)
        return None if found is None else entries[found].upper()
    return None
