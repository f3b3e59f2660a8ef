import pytest

from server.documents.fragment import Fragment
from server.documents.input.limits import FileLimits
from server.documents.markup.text_values import TextValue, is_for_programs, is_text, rewritten_values


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("run", "echo good morning", True),
        ("Script", "a b", True),
        ("id", "item", True),
        ("ID", " item ", True),
        ("id", "some item", False),
        ("title", "item", False),
        ("email", "Email", False),  # a label
        ("language", "Language", False),
        ("language", "English", True),
        ("sourceLanguage", "en", True),
        ("default_locale", "zh-Hans", True),
        ("slang", "yes", False),
        ("slang", "word", False),
        ("sourceLanguage", "English", False),
    ],
)
def test_keys_name_values_for_programs(key: str, value: str, expected: bool) -> None:
    assert is_for_programs(key, value) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("<b>a_b</b>", True), ("<a_b>", False), ("a_b: c", True), ("a_b...", False), (" a_b ", False)],
)
def test_texts_for_readers_are_more_than_one_name(value: str, expected: bool) -> None:
    assert is_text(value) is expected


_VALUES = (" one two", "12", "three\n4\n five ", "six!")


@pytest.mark.parametrize("max_held_bytes", [0, 100])
def test_values_are_written_where_they_stand(max_held_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.documents.markup.text_values._WINDOW_VALUES", 2)
    text = "x= one two;y=;z=12;u=three\n4\n five ;v=six!"
    places = [(text.index(value), text.index(value) + len(value)) for value in _VALUES]
    values = [TextValue(*place, text[slice(*place)], lambda value: f"<{value}>") for place in places]
    steps = rewritten_values(text, values, FileLimits(max_held_bytes=max_held_bytes))
    windows: list[list[Fragment]] = []
    window = next(steps)
    try:
        while True:
            windows.append(window)
            window = steps.send([(str(part).upper() if part != "six!" else "six!",) for (part,) in window])
    except StopIteration as end:
        written = end.value
    assert written == "x=< ONE TWO>;y=;z=12;u=<THREE\n4\n FIVE >;v=six!"
    held: list[list[Fragment]] = [[("one two",), ("three",), ("five",), ("six!",)]]
    assert windows == (held if max_held_bytes else [held[0][:1], held[0][1:]])
