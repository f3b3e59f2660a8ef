import pytest

from server.text.formality import Formality, formality_languages, formality_rules, has_formality

FORMAL, INFORMAL = {Formality.FORMAL}, {Formality.INFORMAL}


@pytest.mark.parametrize(
    ("language", "translation", "forms"),
    [
        ("de", "Wo ist Ihr Bruder?", FORMAL),
        ("de", "Wo ist dein Bruder?", INFORMAL),
        ("de", "Können Sie mir helfen?", FORMAL),
        ("de", "Kannst mir helfen?", INFORMAL),
        ("de", "Gut. Sie sind müde.", FORMAL),
        ("de", "Ich kenne dich, aber Sie kennen mich.", FORMAL | INFORMAL),
        ("de", "Der Dirigent ist durstig.", set()),
        ("de", "Komm bitte herein.", INFORMAL),
        ("de", "Kommen Sie bitte herein.", FORMAL),
        ("de", "Ich habe ihr und ihnen geholfen.", set()),
        ("fr", "Où est votre frère ?", FORMAL),
        ("fr", "Où est ton frère ?", INFORMAL),
        ("fr", "Je t’aime.", INFORMAL),
        ("fr", "Je t'aime.", INFORMAL),
        ("fr", "Entrez, s'il te plaît.", FORMAL | INFORMAL),
        ("fr", "A-t-il un chien ?", set()),
        ("es", "¿Dónde está usted?", FORMAL),
        ("es", "¿Dónde estás?", INFORMAL),
        ("es", "Ven aquí.", INFORMAL),
        ("es", "Venga aquí.", FORMAL),
        ("it", "Dove hai messo il libro?", INFORMAL),
        ("it", "Come sta Lei?", FORMAL),
        ("pt-BR", "Onde está o senhor?", FORMAL),
        ("pt", "Onde estás tu?", INFORMAL),
        ("nl", "Waar is uw broer?", FORMAL),
        ("nl", "Waar is je broer?", INFORMAL),
        ("pl", "Gdzie jest Pan?", FORMAL),
        ("pl", "Gdzie jest twój brat?", INFORMAL),
        ("ru", "Где ваш брат?", FORMAL),
        ("ru", "Где твой брат?", INFORMAL),
    ],
)
def test_words_show_the_form_of_address(language: str, translation: str, forms: set[Formality]) -> None:
    assert formality_rules(language).forms("You and your house.", "en", translation) == forms


def test_an_english_source_without_a_second_person_has_no_address() -> None:
    rules = formality_rules("de")
    assert rules.forms("They are tired.", "en", "Sie sind müde.") == set()
    assert rules.forms("I saw them, yes.", "en", "Ich sah Sie, ja.") == set()
    assert rules.forms("Ils sont là.", "fr", "Ich sah Sie.") == FORMAL
    assert rules.forms("Come in.", "en", "Komm herein.") == INFORMAL
    assert rules.forms("Come in.", "en", "Kommen Sie herein.") == FORMAL
    assert rules.forms("Are they coming?", "en", "Kommen sie?") == set()


@pytest.mark.parametrize("language", formality_languages())
def test_the_words_to_avoid_are_those_that_the_rules_find(language: str) -> None:
    rules = formality_rules(language)
    for form in Formality:
        spellings = list(rules.spellings(form))
        assert spellings
        for word in spellings:
            found = rules.forms("You.", "en", f"a, {word} b.") | rules.forms("You.", "en", f"{word} b.")
            assert form in found, word
            assert form.opposite not in found, word


def test_languages_without_rules_are_named() -> None:
    assert has_formality("pt-BR")
    assert has_formality("DE")
    assert not has_formality("en")
    assert formality_languages() == ("de", "es", "fr", "it", "nl", "pl", "pt", "ru")


@pytest.mark.parametrize("translation", ["Setzen Sie sich.", "Bitte setzen Sie sich.", "bitte, warten Sie"])
def test_a_request_with_please_is_formal(translation: str) -> None:
    assert formality_rules("de").forms("Sit down, please.", "en", translation) == {Formality.FORMAL}
