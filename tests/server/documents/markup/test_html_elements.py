import pytest

from server.documents.markup.html_elements import name_in_text, role_in_html
from server.documents.markup.items import Role


@pytest.mark.parametrize(
    ("name", "attributes", "role"),
    [
        ("p", {}, Role.BLOCK),
        ("unknown", {}, Role.BLOCK),
        ("b", {}, Role.SOFT),
        ("a", {}, Role.HARD),
        ("code", {}, Role.ATOM),
        ("wbr", {}, Role.MARK),
        ("b", {"translate": "no"}, Role.ATOM),
        ("a", {"translate": "NO"}, Role.ATOM),
        ("p", {"translate": "no"}, Role.BREAK),
        ("p", {"translate": "yes"}, Role.BLOCK),
        ("span", {"class": "x notranslate y"}, Role.ATOM),
        ("div", {"class": "notranslate"}, Role.BREAK),
        ("div", {"class": "notranslated"}, Role.BLOCK),
    ],
)
def test_the_role_of_an_element(name: str, attributes: dict[str, str], role: Role) -> None:
    assert role_in_html(name, attributes) is role


def test_few_elements_have_a_meaning_for_the_words_around_them() -> None:
    assert name_in_text("sup") == "sup"
    assert name_in_text("b") == ""
