import pytest

from server.text.readers.icu_messages import message_lines, message_parts


@pytest.mark.parametrize(
    ("message", "texts"),
    [
        ("", []),
        ("one", ["one"]),
        ("one\ntwo", ["one\ntwo"]),
        ("{name} is here", ["{name} is here"]),
        ("{n, plural, one {a} other {b}} and {m, select, other {c}}", ["a", "b", " and ", "c"]),
        ("{n,plural,offset:1 =0{none} other{# others}}", ["none", "# others"]),
        ("{n, plural,\n  other {first\nsecond}\n}\nthird", ["first\nsecond", "\nthird"]),
        ("{n, plural, other {a '{' b '}}' c ' d''}}", ["a '{' b '}}' c ' d''"]),
        ("{0,choice,0#no dog|1#a dog|1<{0} dogs} here", ["no dog", "a dog", "{0} dogs", " here"]),
        ("{0,choice,0#{n, plural, other {a | b}}|1.5<c}", ["a | b", "c"]),
        ("{0,choice,0#a|b}", ["{0,choice,0#a|b}"]),
        ("{n, plural, other {a '{ b}}", ["{n, plural, other {a '{ b}}"]),
        ("{n, plural, other {{a} and {b}}}", ["{a} and {b}"]),
        ("x {n, plural, other {y {m, select, a {z} b {w}} v}} u", ["x ", "y ", "z", "w", " v", " u"]),
        # What is not well-formed is text, behind well-formed arguments as well.
        ("{n, plural, other {a}} {m, plural, one {b}", ["a", " {m, plural, one {b}"]),
        ("{n, plural, other {a}", ["{n, plural, other {a}"]),
        ("{n, plural, other {a} ! }", ["{n, plural, other {a} ! }"]),
        ("{n, plural, other {a {m, select, x {b}}", ["{n, plural, other {a {m, select, x {b}}"]),
        ("{n, number} {m, date, short}", ["{n, number} {m, date, short}"]),
    ],
)
def test_texts_and_syntax_of_a_message(message: str, texts: list[str]) -> None:
    parts = message_parts(message)
    assert "".join(part for _, part in parts) == message
    assert [part for is_text, part in parts if is_text] == texts
    assert all(part for _, part in parts)


def test_arguments_may_be_nested_eight_deep() -> None:
    def nested(depth: int) -> str:
        return "text" if depth == 0 else f"{{n, plural, other {{{nested(depth - 1)}}}}}"

    for depth in (1, 8, 9):
        assert [part for is_text, part in message_parts(nested(depth)) if is_text] == ["text"]
    deep = nested(12)
    assert message_parts(deep) == [(True, deep)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("one\ntwo\r\n", ["one\n", "two\r\n"]),
        ("{n, plural, other {a}}\n{m, plural, other {b}}", ["{n, plural, other {a}}\n", "{m, plural, other {b}}"]),
        ("x {n, plural,\n\tother {a\nb}\n} y\nz\n", ["x {n, plural,\n\tother {a\nb}\n} y\n", "z\n"]),
        (
            "{n, plural,\nother {a}} {m, select,\nother {b}}\nc",
            ["{n, plural,\nother {a}} {m, select,\nother {b}}\n", "c"],
        ),
        ("{n, plural,\nother {a}\nb", ["{n, plural,\n", "other {a}\n", "b"]),
    ],
)
def test_an_argument_is_in_one_line(text: str, lines: list[str]) -> None:
    assert message_lines(text) == lines
