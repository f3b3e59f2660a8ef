from pathlib import Path

import pytest

from library.names import parse_name


@pytest.mark.parametrize(
    ("name", "kind", "text", "short"),
    [
        ("en-fr", "hub", "Helsinki-NLP/opus-mt-en-fr", "opus-mt-en-fr"),
        ("nb-de", "hub", "Helsinki-NLP/opus-mt-no-de", "opus-mt-no-de"),
        ("en-ja", "hub", "Helsinki-NLP/opus-mt-en-jap", "opus-mt-en-jap"),
        ("en-pt", "hub", "Helsinki-NLP/opus-mt-tc-big-en-pt", "opus-mt-tc-big-en-pt"),
        ("facebook/nllb-200-distilled-600M", "hub", "facebook/nllb-200-distilled-600M", "nllb-200-distilled-600M"),
        ("https://huggingface.co/google/madlad400-3b-mt/", "hub", "google/madlad400-3b-mt", "madlad400-3b-mt"),
        ("https://huggingface.co/google/mt5-small/tree/main", "hub", "google/mt5-small", "mt5-small"),
        ("https://models.example/en_de.argosmodel", "url", "https://models.example/en_de.argosmodel", "en_de"),
        ("http://h/a/model-1.2.tar.gz?v=3", "url", "http://h/a/model-1.2.tar.gz?v=3", "model-1.2"),
    ],
)
def test_a_name_is_a_pair_a_hub_name_or_a_url(name: str, kind: str, text: str, short: str) -> None:
    model = parse_name(name)
    assert (model.kind, model.text, model.short) == (kind, text, short)


def test_a_path_that_exists_precedes_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "team" / "model").mkdir(parents=True)
    assert parse_name("team/model").kind == "path"
    assert parse_name("other/model").kind == "hub"
    monkeypatch.chdir(tmp_path / "team" / "model")
    assert [parse_name(name).short for name in (".", "..", "../model/.")] == ["model", "team", "model"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("en-xx", r"no model is known for en-xx; available from en: af ar az .*; name a model of the hub"),
        ("qq-en", r"no model is known for qq-en; name a model of the hub"),
        ("nothing", r"Given: nothing, which does not exist"),
        ("../a/b/c", r"Given: \.\./a/b/c, which does not exist"),
        ("", r"Given: , which does not exist"),
    ],
)
def test_another_name_is_an_error_with_the_possible_ones(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_name(name)
