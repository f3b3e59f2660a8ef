"""Markers, placeholders, capitals and white space of plain text stay; the words are the model input."""

import asyncio
import threading

import pytest

from server.interface.decoding_options import DecodingOptions
from server.interface.errors import DeadlineExceeded
from server.interface.request import SentenceParams
from server.text.readers.plain_text import may_be_special, read_text
from server.text.readers.units import Unit
from server.text.readers.unknown_characters import UnknownCharacters
from server.text.tokenizers.registry import open_tokenizer
from server.translation import reading
from server.translation.deadline import NO_DEADLINE
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.protection_strategies import Escalation
from server.translation.restoration import Restorer
from server.translation.types import TranslationRequest
from server.translation.worker_threads import PROTECTED_TEXTS
from tests.fakes.echo import MAX_TOKENS, EchoGenerator, make_bundle
from tests.server.text.identity import LETTERS, Identity


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        (
            "# Where is it?\n\n> the dog\n\n- tea\n* the fox\n1. lazy\n2) dog\n",
            "Where is it?|the dog|tea|the fox|lazy|dog",
        ),
        ("  - [ ] tea\n\t• the dog\r\n", "tea|the dog"),
        ("the **lazy** *dog* is __here__ and ~~there~~", "the lazy dog is here and there"),
        ('see [the dog](http://x.org/a_(b) "t") and ![a fox](f.png)', "see the dog and a fox"),
        ("call `rm -rf *` now", "call `rm -rf *` now"),
        ("```\nWhere is it?\n```\nthe dog", "the dog"),
        ("| the dog | tea |\n|---|---|\n| a | b |\n", "the dog|tea|a|b"),
        ("the dog\t4711\ttea\t \tthe fox\nlazy", "the dog|tea|the fox|lazy"),
        ("**the dog**", "the dog"),
        ("a * b * c and x_y_z and 2*3*4", "a * b * c and x_y_z and 2*3*4"),
        ("WHERE IS THE DOG?", "Where is the dog?"),
        ("I AM {name}!", "I am {name}!"),
        ("the dog is in report.pdf now", "the dog is in report.pdf now"),
        ("a) the dog\nb) the fox", "the dog|the fox"),
        ("the dog\n: the fox\n:   tea", "the dog|the fox|tea"),
        ("the dog  jumps 🎉", "the dog  jumps"),
        ("🎉 the dog", "the dog"),
        ("the dog jumps :)\nlazy ;-) fox", "the dog jumps|lazy fox"),
        ("\u2066the dog\u2069 jumps \u202efox\u202c", "the dog jumps fox"),
    ],
)
def test_markers_stay_and_are_no_model_input(identity: Identity, text: str, inputs: str) -> None:
    identity.engine.batches.clear()
    [translation] = identity([text])
    assert " ".join(translation.split()) == " ".join(text.split())
    assert sorted(identity.model_inputs) == sorted(" ".join(each.split()) for each in inputs.split("|"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n ",
        "---",
        "{name}",
        "%s: %d\n",
        "https://x.org/where",
        "`the dog`",
        "🎉🎉",
        "**",
        "1.",
        "42",
        "5 km",
        "# ",
    ],
)
def test_a_text_with_nothing_to_translate_comes_back_as_it_is(identity: Identity, text: str) -> None:
    identity.engine.batches.clear()
    assert identity([text]) == [text]
    assert identity.model_inputs == []


@pytest.mark.parametrize(
    "text", ["  a\n\n\tb  \r\n", "\n", "- a\n  - b\n\n\n", "a\x0bb\x0cc", "{x}\n\n  %s  \n", "\ud800 {a}"]
)
def test_white_space_and_line_breaks_stay(identity: Identity, text: str) -> None:
    assert identity([text]) == [text.replace("\ud800", "\ufffd")]


def test_a_placeholder_that_is_lost_every_time_is_put_between_what_is_around_it(
    echo_bundle_of_letters: EchoGenerator,
) -> None:
    """A model that never returns a name loses it every time."""
    pipeline = Pipeline(echo_bundle_of_letters, TranslationLimits())
    request = TranslationRequest(("where is {name}, and %s",), "en", "de")
    [translation] = asyncio.run(pipeline.translate(request)).translations
    assert translation.text == "where {name}, an %s"


def _piecewise_params(generator: EchoGenerator, options: DecodingOptions) -> list[SentenceParams]:
    """Return the parameters of the fragments between two placeholders that are lost."""
    request = TranslationRequest(
        ("where is {name}, the dog and %s",),
        "en",
        "de",
        options=options,
    )
    asyncio.run(Pipeline(generator, TranslationLimits()).translate(request))
    return [request.params for request in generator.batches[-1]]


def test_options_for_a_whole_text_apply_to_its_first_fragment(
    echo_bundle_of_letters: EchoGenerator,
) -> None:
    options = DecodingOptions(target_prefix="wo", required_phrases=("dog",), min_new_tokens=2)
    first, *others = sorted(
        _piecewise_params(echo_bundle_of_letters, options), key=lambda params: -len(params.target_prefix)
    )
    assert first.target_prefix
    assert first.required_phrases
    assert first.min_new_tokens == 2
    assert [(each.target_prefix, each.required_phrases, each.min_new_tokens) for each in others] == [((), (), 0)]


def test_alternatives_are_those_of_the_first_fragment(echo_bundle_of_letters: EchoGenerator) -> None:
    options = DecodingOptions(return_alternatives=True, num_hypotheses=2)
    params = _piecewise_params(echo_bundle_of_letters, options)
    assert sorted(each.num_rows for each in params) == [1, 2]


def test_names_for_placeholders_are_not_required_beside_as_many_phrases_as_there_may_be(
    echo_bundle_of_letters: EchoGenerator,
) -> None:
    most = MAX_TOKENS - 1
    encode_target = open_tokenizer(echo_bundle_of_letters.bundle).encode_target
    phrase = max(
        ("e" * length for length in range(1, 64)), key=lambda text: (n := len(encode_target(text))) * (n <= most)
    )
    assert len(encode_target(phrase)) == most
    _piecewise_params(echo_bundle_of_letters, DecodingOptions(required_phrases=(phrase,)))
    for batch in echo_bundle_of_letters.batches:
        for request in batch:
            assert sum(map(len, request.params.required_phrases)) <= most


@pytest.fixture
def echo_bundle_of_letters(tmp_path_factory: pytest.TempPathFactory) -> EchoGenerator:
    class Forgetful(EchoGenerator):
        """Leaves out the last character."""

        def _complete(self, request):  # type: ignore[no-untyped-def]
            done = super()._complete(request)
            for hypothesis in done.hypotheses:
                hypothesis.token_ids[-1:] = []
            return done

    return Forgetful(make_bundle(tmp_path_factory.mktemp("letters"), sentences=LETTERS))


def test_sentences_without_placeholders_have_the_parameters_of_plain_text(identity: Identity) -> None:
    identity.engine.batches.clear()
    identity(["Where is it? The dog %s"])
    plain, special = sorted(
        (request for batch in identity.engine.batches for request in batch), key=lambda r: len(r.source)
    )
    identity.engine.batches.clear()
    identity(["Where is it?"])
    [[alone]] = identity.engine.batches
    assert {alone.params} == {request.params for request in (plain, special) if request.params.num_hypotheses == 1}


@pytest.mark.parametrize(
    "start",
    [
        "- ",
        "* ",
        "+ ",
        "• ",
        "‣ ",
        "▪ ",
        "◦ ",
        ": ",
        "– ",
        "— ",
        "1. ",
        "1) ",
        "(1) ",
        "a) ",
        "# ",
        "[ ] ",
        "[x] ",
        "> ",
        ">",
        "| ",
    ],
)
def test_each_marker_at_the_beginning_of_a_line_is_found(start: str) -> None:
    unknown = UnknownCharacters(map(chr, range(0x3000)))
    for text in (f"{start}the dog", f"the fox\n  {start}the dog"):
        assert may_be_special(text, unknown)
        assert "the dog" in [part.text for part in read_text(text, unknown) if isinstance(part, Unit)]


def test_everyday_text_is_not_special() -> None:
    unknown = UnknownCharacters(map(chr, range(0x250)))
    for text in (
        "Where is the dog? It's here, isn't it.",
        "Größe, Übermut & Ärger: (nicht) wahr!"[:14],
        "I am well-known.",
        "Cats, dogs etc. are here, e.g. Dr. Smith of the U.S. and/or his wife (i.e. she).",
    ):
        assert not may_be_special(text, unknown)


@pytest.mark.parametrize("text", ["NATO is big, and so is it.", "I am a [dog] & a fox.", "a=b"])
def test_a_text_that_only_looks_special_is_plain(identity: Identity, text: str) -> None:
    request = TranslationRequest((text,), "en", "de")
    assert asyncio.run(identity.pipeline._reader.read(request, NO_DEADLINE)).is_plain


def test_a_long_text_is_not_searched_on_the_event_loop(identity: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[threading.Thread] = set()

    def search(text: str, unknown: UnknownCharacters) -> bool:
        threads.add(threading.current_thread())
        return may_be_special(text, unknown)

    monkeypatch.setattr(reading, "may_be_special", search)
    identity(["the dog " * 1000])
    assert threads
    assert threading.current_thread() not in threads


def test_a_long_text_whose_time_is_up_while_it_waits_is_never_read(
    identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr(reading, "read_text", lambda text, unknown: read.append(text))
    may_go_on = threading.Event()
    others = [PROTECTED_TEXTS.submit(may_go_on.wait) for _ in range(PROTECTED_TEXTS._max_workers)]
    request = TranslationRequest(("the dog {name} " * 1000,), "en", "de", timeout_seconds=0.05)
    try:
        with pytest.raises(DeadlineExceeded, match=r"within 0\.05 seconds"):
            asyncio.run(identity.pipeline.translate(request))
        assert identity(["the dog " * 1000]) == ["the dog " * 1000]  # does not wait for those threads
    finally:
        may_go_on.set()
        for other in (*others, PROTECTED_TEXTS.submit(bool)):
            other.result()
    assert read == []


def test_a_text_is_not_read_on_when_its_time_is_up(identity: Identity) -> None:
    times = iter([0.0, 0.0, 0.5, 0.5, 2.0])  # arrival, timeout, two lines, and the line that is too late
    pipeline = Pipeline(identity.engine, TranslationLimits(), clock=lambda: next(times))
    request = TranslationRequest(("the dog {name}\n" * 1000,), "en", "de", timeout_seconds=1.0)
    with pytest.raises(DeadlineExceeded, match="within 1 seconds"):
        asyncio.run(pipeline.translate(request))


def test_no_sentence_of_a_long_text_is_processed_on_the_event_loop(
    identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[tuple[type, str], set[threading.Thread]] = {
        (Escalation, "protect"): set(),
        (Restorer, "_is_restored"): set(),
    }

    for (stage, name), seen in threads.items():
        plain = getattr(stage, name)

        def watched(*args: object, plain=plain, seen=seen) -> object:  # type: ignore[no-untyped-def]
            seen.add(threading.current_thread())
            return plain(*args)

        monkeypatch.setattr(stage, name, watched)
    identity(["the dog {name}\n" * 200])
    assert all(threads.values())
    assert all(threading.current_thread() not in seen for seen in threads.values())
