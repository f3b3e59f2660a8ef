import pytest

from bundle.loading import Bundle
from server.text.tokenizers.source_template import SourceTemplate


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
