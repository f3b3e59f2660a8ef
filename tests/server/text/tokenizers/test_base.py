import json
from pathlib import Path

import pytest

from bundle.loading import Bundle
from bundle.manifest import TARGET_VOCABULARY_FILE, VOCABULARY_FILE
from server.text.tokenizers.base import SourceTemplate, read_vocabularies, spans_of_beginnings
from tests.fakes.echo import make_bundle


def _write(bundle: Bundle, name: str, content: object) -> None:
    bundle.file(name).write_text(json.dumps(content), encoding="utf-8")


def test_both_sides_share_a_vocabulary_or_have_one_each(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path)
    size = bundle.config.shapes.vocab_size
    _write(bundle, VOCABULARY_FILE, {"a": 0, "b": size - 1})
    source, target = read_vocabularies(bundle)
    assert source is target
    assert source == {"a": 0, "b": size - 1}
    _write(bundle, TARGET_VOCABULARY_FILE, {"c": 1})
    assert read_vocabularies(bundle) == ({"a": 0, "b": size - 1}, {"c": 1})


@pytest.mark.parametrize("name", [VOCABULARY_FILE, TARGET_VOCABULARY_FILE])
@pytest.mark.parametrize("difference", [0, None])
def test_tokens_outside_the_vocabulary_are_rejected(tmp_path: Path, name: str, difference: int | None) -> None:
    bundle = make_bundle(tmp_path)
    size = bundle.config.shapes.vocab_size
    wrong = -1 if difference is None else size
    _write(bundle, name, {"a": 0, "b": wrong})
    with pytest.raises(ValueError, match=rf"tokens of {name} must be from 0 to {size - 1}. Given: {wrong}"):
        read_vocabularies(bundle)


@pytest.mark.parametrize("content", [[], {}, "a"])
def test_a_vocabulary_must_have_pieces(tmp_path: Path, content: object) -> None:
    bundle = make_bundle(tmp_path)
    _write(bundle, VOCABULARY_FILE, content)
    with pytest.raises(ValueError, match="must be a JSON object"):
        read_vocabularies(bundle)


def _template(bundle: Bundle, **described: object) -> SourceTemplate:
    tokenizer = bundle.config.tokenizer.model_copy(update=described)
    return SourceTemplate(bundle.config.model_copy(update={"tokenizer": tokenizer}))


@pytest.mark.parametrize(
    ("described", "language", "expected", "num_before"),
    [
        ({}, None, [7, 8, 0], 0),  # the end of the sequence
        ({"after": ()}, None, [7, 8], 0),
        ({"before": (5,), "after": (6, 0)}, "en", [5, 7, 8, 6, 0], 1),
        ({"source_language_tokens": {"en": 9}}, "en", [9, 7, 8, 0], 1),
        ({"source_language_tokens": {"en": 9}, "before": (5,)}, "en", [9, 5, 7, 8, 0], 2),
        ({"source_language_tokens": {"en": 9}, "source_language_last": True}, "en", [7, 8, 0, 9], 0),
        ({"source_language_tokens": {"en": 9}, "source_language_last": True, "before": (5,)}, "en", [5, 7, 8, 0, 9], 1),
    ],
)
def test_a_source_has_control_tokens_and_a_language_around_its_text(
    echo_bundle: Bundle, described: dict[str, object], language: str | None, expected: list[int], num_before: int
) -> None:
    template = _template(echo_bundle, **described)
    assert template.source([7, 8], language).tolist() == expected
    assert template.num_before == num_before
    assert template.num_added == len(expected) - 2


def test_a_source_in_an_unknown_language_has_no_token_for_it(echo_bundle: Bundle) -> None:
    template = _template(echo_bundle, source_language_tokens={"en": 9})
    assert template.source([7], None).tolist() == template.source([7], "fr").tolist() == [7, 0]


def test_prompts_are_those_of_target_languages(echo_bundle: Bundle) -> None:
    template = _template(echo_bundle, prompts={"de": "to German: ", "fr": "French: "})
    assert [template.prompt(target) for target in ("de", "fr", "es", None)] == ["to German: ", "French: ", "", ""]
    assert template.longest_prompt == "to German: "
    assert _template(echo_bundle).longest_prompt == ""


def test_tokens_cover_what_they_add() -> None:
    texts = ["", "ab", "ab", "abcd", "abc", "abcdef"]
    spans = spans_of_beginnings(range(5), "abcde", lambda tokens: texts[len(tokens)])
    assert spans == [(0, 2), (2, 2), (2, 4), (4, 4), (4, 5)]
    assert spans_of_beginnings([], "", lambda _: "") == []
