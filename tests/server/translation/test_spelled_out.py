"""Abbreviations that the model reads in full, in every kind of text."""

import asyncio
import time
from dataclasses import replace

import pytest

from bundle.loading import Bundle
from server.interface.decoding_options import DecodingOptions
from server.text.glossary import Glossary
from server.text.tokenizers.registry import open_tokenizer
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.scoring import Scorer, ScoreRequest
from server.translation.text_stream import TextStream
from server.translation.types import TranslationRequest
from tests.fakes.echo import EchoGenerator, make_bundle
from tests.server.text.identity import LETTERS, IdentityEngine

TEXT = "Tee u. a. mit Obst."
READ = "Tee unter anderem mit Obst."


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("abbreviations")
    return make_bundle(folder, languages=("de", "en"), sentences=[*LETTERS, *[READ] * 20])


def _request(*texts: str, **fields: object) -> TranslationRequest:
    return replace(TranslationRequest(texts, "de", "en"), **fields)  # type: ignore[arg-type]  # fields


def _translations(engine: EchoGenerator, request: TranslationRequest, stream: TextStream | None = None) -> list[str]:
    result = asyncio.run(Pipeline(engine, TranslationLimits()).translate(request, stream))
    return [each.text for each in result.translations]


def _sources(engine: EchoGenerator) -> set[str]:
    tokenizer = open_tokenizer(engine.bundle)
    return {tokenizer.decode(each.source.tolist()) for batch in engine.batches for each in batch}


@pytest.mark.parametrize(
    ("text", "read", "fields"),
    [
        (TEXT, READ, {}),
        (TEXT, READ, {"options": DecodingOptions(num_hypotheses=2, beam_size=2)}),
        (TEXT, READ, {"options": DecodingOptions(split=False)}),
        (TEXT, READ, {"options": DecodingOptions(target_prefix="Tea")}),
        (TEXT, READ, {"options": DecodingOptions(return_alignments=True)}),
        (f"{TEXT} Tee.", READ, {}),
        (TEXT[:-1] + " a@b.de.", READ[:-1] + " a@b.de.", {}),
        (TEXT[:-1] + " 7.", READ[:-1] + " 7.", {"source": "de-CH"}),
        (f"<b>{TEXT}</b>", READ, {"format": "html"}),
        (TEXT, TEXT, {"source": "fr"}),
    ],
)
def test_the_model_reads_it_in_full_in_every_kind_of_text(
    bundle: Bundle, text: str, read: str, fields: dict[str, object]
) -> None:
    engine = IdentityEngine(bundle)
    _translations(engine, _request(text, **fields))
    assert read in _sources(engine)


def test_a_stream_is_the_translation_of_what_the_model_reads(bundle: Bundle) -> None:
    assert _translations(IdentityEngine(bundle), _request(TEXT), TextStream()) == [READ]


def test_a_term_of_a_glossary_is_found_in_the_text(bundle: Bundle) -> None:
    engine = IdentityEngine(bundle)
    for text in (TEXT, f"{TEXT[:-1]} 7."):
        _translations(engine, _request(text, glossary=Glossary({"u. a.": "Tee"})))
    assert all(each.params.required_terms for batch in engine.batches for each in batch)
    assert READ in _sources(engine)


def test_a_tag_around_it_is_around_its_translation(bundle: Bundle) -> None:
    text = "Tee <b>u. a.</b> mit <i>Obst</i>."
    [found] = _translations(IdentityEngine(bundle), _request(text, format="html"))
    assert found == "Tee <b>unter anderem</b> mit <i>Obst</i>."


def test_a_given_translation_is_scored_against_what_the_model_reads(bundle: Bundle) -> None:
    engine = IdentityEngine(bundle)
    scorer = Scorer(engine, TranslationLimits(), open_tokenizer(bundle), time.monotonic)
    asyncio.run(scorer.score(ScoreRequest((TEXT,), ("Tea.",), "de", "en")))
    assert _sources(engine) == {READ}
