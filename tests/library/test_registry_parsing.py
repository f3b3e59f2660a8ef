import pytest

from library.mozilla import choose_model, parse_registry
from model.checkpoints.checkpoint import CheckpointError
from tests.library.registry_entries import CONTENTS, entry, record


@pytest.mark.parametrize("content", [[], {}, {"data": 3}, {"models": []}, "text", None])
def test_another_content_is_no_registry(content: object) -> None:
    with pytest.raises(CheckpointError, match="the registry must have"):
        parse_registry(content, "")


def test_a_registry_cannot_name_files_outside_the_folder() -> None:
    listed = entry("tiny")
    listed["files"]["model"]["path"] = "models/..gz"  # type: ignore[index]
    with pytest.raises(CheckpointError, match="unusable file name"):
        parse_registry({"models": {"en-de": [listed]}}, "http://h")
    assert not parse_registry({"models": {"en-de": [{"files": {}}, 3, None]}}, "")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("hash", "0" * 63, "unusable SHA-256: '000"),
        ("hash", 5, "unusable SHA-256: 5"),
        ("size", "123", "unusable size: '123'"),
        ("size", -1, "unusable size: -1"),
        ("size", True, "unusable size: True"),
    ],
)
def test_a_check_of_the_registry_is_never_left_out(field: str, value: object, message: str) -> None:
    listed = record("vocab.ende.spm", "vocab", "1.0")
    listed["attachment"][field] = value  # type: ignore[index]
    with pytest.raises(CheckpointError, match=message):
        parse_registry({"data": [listed]}, "http://h")


def test_an_unreleased_model_is_taken_if_there_is_no_other() -> None:
    models = parse_registry({"models": {"en-de": [entry("tiny", release="Nightly")]}}, "http://h")
    assert choose_model(models, "en", "de").tier == "tiny"
    assert models[0].files[0].remote.url == "http://h/models/tiny/model.ende.intgemm.alphas.bin.gz"


ALPHA = "env.channel == 'default' || env.channel == 'nightly'"
DESKTOP, ANDROID = "env.appinfo.OS != 'Android'", "env.appinfo.OS == 'Android'"


@pytest.mark.parametrize(
    ("records", "chosen"),
    [
        ([("3.0", ""), ("3.0a2", "")], "3.0"),
        ([("3.0a2", ""), ("3.0b1", ""), ("3.0a10", "")], "3.0b1"),
        ([("3.9", ""), ("3.10", ""), ("3.10.1a1", "")], "3.10.1a1"),
        ([("3.0", DESKTOP), ("3.1", f"({ALPHA}) && {DESKTOP}")], "3.0"),
        ([("2.0", ANDROID), ("2.1", "env.channel != 'release'")], "2.0"),
        ([("2.0a1", ALPHA), ("", ALPHA)], "2.0a1"),
    ],
)
def test_the_newest_version_that_is_released_somewhere_is_chosen(records: list[tuple[str, str]], chosen: str) -> None:
    listed = [
        record(name, kind, version, filter_expression=expression)
        for version, expression in records
        for name, kind in zip(CONTENTS, ("model", "vocab", "lex"), strict=True)
    ]
    assert choose_model(parse_registry({"data": listed}, "http://h"), "en", "de").version == chosen


@pytest.mark.parametrize(
    ("pair", "listed", "chosen"),
    [
        (("en", "nb"), ["en-no", "en-nn"], "en-no"),
        (("en", "no"), ["en-nn", "en-nb"], "en-nb"),
        (("en", "zh_hant"), ["en-zh", "en-zh_hant"], "en-zh_hant"),
        (("pt", "en"), ["pt_br-en", "pt-en"], "pt-en"),
        (("no", "sv"), ["nb-en", "nn-sv"], "nn-sv"),  # the other has no model into that language
    ],
)
def test_languages_match_as_in_requests(pair: tuple[str, str], listed: list[str], chosen: str) -> None:
    entries = [
        {**entry("tiny"), "sourceLanguage": name.partition("-")[0], "targetLanguage": name.partition("-")[2]}
        for name in listed
    ]
    models = parse_registry({"models": {"all": entries}}, "http://h")
    found = choose_model(models, *pair)
    assert f"{found.source}-{found.target}" == chosen
