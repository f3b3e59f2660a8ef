import pytest

from server.text.scripts import main_script, scripts_of


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("", None),
        ("plain text", None),
        ("Größe, naïve – “ok”", None),
        ("Привет", "CYRILLIC"),
        ("Привет ok", "CYRILLIC"),
        ("да ok", "CYRILLIC"),  # half of the letters
        ("да one", None),
        ("日本", "CJK"),
        ("今日はとても", "HIRAGANA"),
        ("… — “”", None),
        ("12 да", "CYRILLIC"),
        ("ǅ Ḁ", None),  # Latin letters of later blocks
    ],
)
def test_the_script_of_at_least_half_of_the_letters(text: str, script: str | None) -> None:
    assert main_script(text) == script


def test_languages_have_their_scripts() -> None:
    assert scripts_of("de") == {"LATIN"}
    assert scripts_of("ru") == {"CYRILLIC"}
    assert scripts_of("sr") == {"CYRILLIC", "LATIN"}
    assert scripts_of("ja") == {"CJK", "HIRAGANA", "KATAKANA"}
    assert scripts_of("ko") == {"HANGUL", "CJK"}
