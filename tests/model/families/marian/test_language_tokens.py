from model.families.marian.hugging_face import language_tokens


def test_two_tokens_of_one_macro_language_keep_a_code_each() -> None:
    assert language_tokens(["a", ">>ara<<", ">>arb<<", ">><<", "<<", ">>fra<<"]) == {
        "ar": ">>ara<<",
        "arb": ">>arb<<",
        "fr": ">>fra<<",
    }
