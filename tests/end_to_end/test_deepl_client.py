"""DeepL's own Python client, unmodified, against a running server."""

import subprocess
import sys
from pathlib import Path

import deepl
import pytest

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, until


@pytest.fixture(scope="module")
def client(polyglot: Served) -> deepl.DeepLClient:
    return deepl.DeepLClient("any key", server_url=polyglot.url)


def _one(result: deepl.TextResult | list[deepl.TextResult]) -> deepl.TextResult:
    assert isinstance(result, deepl.TextResult)
    return result


def test_texts_are_translated_in_their_order(client: deepl.DeepLClient) -> None:
    texts = ["Good morning.", "", "Thank you.", "Wo ist der Bahnhof, bitte schön?"]
    results = client.translate_text(texts, target_lang="DE")
    assert isinstance(results, list)
    assert results[0].text == "Guten Morgen."
    assert [result.text for result in results[1::2]] == texts[1::2]
    assert [result.billed_characters for result in results] == [len(text) for text in texts]
    assert [result.detected_source_lang for result in results] == ["EN", "EN", "EN", "DE"]


def test_the_source_may_be_named_and_the_target_be_a_variant(client: deepl.DeepLClient) -> None:
    assert _one(client.translate_text("Good morning.", source_lang="en", target_lang="de")).text == "Guten Morgen."
    for variant in ("EN-GB", "en-us"):
        assert (
            _one(client.translate_text("Guten Tag.", source_lang="DE", target_lang=variant)).detected_source_lang
            == "DE"
        )


def test_options_are_taken_and_unknown_ones_do_no_harm(client: deepl.DeepLClient) -> None:
    result = client.translate_text(
        "Good morning.",
        source_lang="EN",
        target_lang="DE",
        context="At breakfast.",
        split_sentences=deepl.SplitSentences.NO_NEWLINES,
        preserve_formatting=True,
        formality=deepl.Formality.PREFER_MORE,
        extra_body_parameters={"nobody_knows_this": True},
    )
    assert _one(result).text == "Guten Morgen."


def test_what_is_not_possible_raises_what_the_client_expects(client: deepl.DeepLClient) -> None:
    with pytest.raises(deepl.DeepLException, match=r"target_lang.*not supported"):
        client.translate_text("Tea.", target_lang="JA")
    with pytest.raises(deepl.DeepLException, match=r"source_lang.*not supported"):
        client.translate_text("Tea.", source_lang="JA", target_lang="DE")
    with pytest.raises(deepl.DeepLException, match=r"Target language.*formality"):
        client.translate_text("Tee.", source_lang="DE", target_lang="EN-GB", formality="more")


def test_languages_and_usage(client: deepl.DeepLClient) -> None:
    assert [language.code for language in client.get_source_languages()] == ["DE", "EN"]
    targets = {language.code: language for language in client.get_target_languages()}
    assert set(targets) == {"DE", "EN-GB", "EN-US", "ES", "FR"}
    assert targets["DE"].supports_formality is True
    assert targets["EN-GB"].supports_formality is False
    before = client.get_usage().character.count
    client.translate_text("Good morning.", target_lang="DE")
    usage = client.get_usage()
    assert before is not None
    assert usage.character.count == before + len("Good morning.")
    assert not usage.any_limit_reached


def test_glossaries_are_stored_used_and_deleted(client: deepl.DeepLClient) -> None:
    assert ("en", "de") in [(pair.source_lang, pair.target_lang) for pair in client.get_glossary_languages()]
    entries = {"station": "Haltestelle", "Good morning": "Moin"}
    made = client.create_glossary("Travel", "EN", "DE", entries)
    try:
        assert (made.name, made.entry_count, made.ready) == ("Travel", 2, True)
        assert client.get_glossary(made.glossary_id).creation_time == made.creation_time
        assert made.glossary_id in [glossary.glossary_id for glossary in client.list_glossaries()]
        assert client.get_glossary_entries(made) == entries
        texts = ["Good morning. Where is the station?", "Thank you."]
        results = client.translate_text(texts, source_lang="EN", target_lang="DE", glossary=made)
        assert isinstance(results, list)
        assert "Moin" in results[0].text
        assert "Haltestelle" in results[0].text
        assert results[1].text == _one(client.translate_text(texts[1], source_lang="EN", target_lang="DE")).text
        with pytest.raises(deepl.DeepLException, match="from en to de"):
            client.translate_text("Tee.", source_lang="DE", target_lang="EN-GB", glossary=made.glossary_id)
    finally:
        client.delete_glossary(made)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_glossary(made.glossary_id)
    csv = client.create_glossary_from_csv("Travel", "EN", "DE", 'station,"Halt"\n')
    assert client.get_glossary_entries(csv) == {"station": "Halt"}
    client.delete_glossary(csv)


def test_tags_are_kept(client: deepl.DeepLClient) -> None:
    html = "<p>Good <b>morning</b>, <i>friends</i>.</p><!-- Tea. -->"
    translated = _one(client.translate_text(html, source_lang="EN", target_lang="DE", tag_handling="html")).text
    assert "Morgen" in translated
    for kept in ("<p>", "</p>", "<b>", "</b>", "<i>", "</i>", "<!-- Tea. -->"):
        assert translated.count(kept) == 1
    xml = '<doc><keep>Good morning.</keep><par id="1">Good morning.</par></doc>'
    kept_xml = _one(
        client.translate_text(
            xml, source_lang="EN", target_lang="DE", tag_handling="xml", ignore_tags=["keep"], splitting_tags="par"
        )
    ).text
    assert kept_xml == '<doc><keep>Good morning.</keep><par id="1">Guten Morgen.</par></doc>'
    detected = _one(client.translate_text("<p><i>Wo ist der Bahnhof?</i></p>", target_lang="FR", tag_handling="html"))
    assert detected.detected_source_lang == "DE"


def test_documents(client: deepl.DeepLClient, tmp_path: Path) -> None:
    source = tmp_path / "letter.txt"
    source.write_text("Good morning.\n\nThank you.\n", encoding="utf-8")
    with source.open("rb") as content:
        handle = client.translate_document_upload(content, target_lang="DE")
    until(lambda: client.translate_document_get_status(handle).done)
    status = client.translate_document_get_status(handle)
    assert status.ok
    assert status.billed_characters == len("Good morning.Thank you.")
    result = tmp_path / "brief.txt"
    with result.open("wb") as sink:
        client.translate_document_download(handle, sink)
    translated = result.read_text(encoding="utf-8").split("\n")
    assert translated[0] == "Guten Morgen."
    assert "Dank" in translated[2]
    with pytest.raises(deepl.DeepLException):
        client.translate_document_get_status(handle)


def test_its_command_line(polyglot: Served) -> None:
    command = [sys.executable, "-m", "deepl", "--server-url", polyglot.url, "--auth-key", "k"]
    ran = subprocess.run(
        [*command, "text", "--to", "DE", "Good morning."],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "Guten Morgen."), ran.stderr
