import io
import re

import pytest

from bundle.loading import Bundle
from server.cli.offline_options import OfflineOptions
from server.cli.translate.input_lines import UndecodableInput
from server.cli.translate.lines import translate_file
from server.cli.translate.stats import OfflineStats
from server.documents.formats.options import FormatOptions
from server.interface.decoding_options import DecodingOptions


def _translate(bundle: Bundle, text: bytes, options: OfflineOptions | None = None) -> tuple[list[str], OfflineStats]:
    sink = io.BytesIO()
    options = options or OfflineOptions(threads=1, decoding=DecodingOptions(beam_size=1))
    stats = translate_file([bundle], io.BytesIO(text), sink, options)
    lines = sink.getvalue().decode().split("\n")
    assert lines.pop() == ""
    return lines, stats


def test_every_line_has_a_line_in_the_output(default_bundle: Bundle) -> None:
    text = "\ufeffGood morning. How are you today?\r\n\n  I am here.  \n---\na\u2028b\x0bc\nThank you.".encode()
    lines, stats = _translate(default_bundle, text)
    assert len(lines) == stats.lines == 6
    assert lines[0].endswith("?")
    assert "\ufeff" not in lines[0]
    assert lines[1] == ""
    assert lines[2].startswith("  ")
    assert lines[2].endswith("  ")
    assert lines[3] == "---"
    assert lines[5]


def test_lines_do_not_depend_on_the_order_they_are_decoded_in(default_bundle: Bundle) -> None:
    lines = [b"Tom likes tea.", b"Where is the railway station?", b"Yes.", b"I would like to go home now, please."] * 40
    options = OfflineOptions(threads=1, cache_sentences=0, decoding=DecodingOptions(beam_size=1))
    translated, stats = _translate(default_bundle, b"\n".join(lines), options)
    assert translated == translated[:4] * 40
    assert stats.sentences == stats.decoded == 160
    assert stats.rows_per_step > 4


def test_a_sentence_that_occurs_often_is_decoded_once_and_translated_the_same(default_bundle: Bundle) -> None:
    lines = b"\n".join([b"Tom likes tea.", b"Yes.", b"Tom likes tea. Where is the railway station?"] * 50)
    uncached = OfflineOptions(threads=1, cache_sentences=0, decoding=DecodingOptions(beam_size=1))
    translated, stats = _translate(default_bundle, lines)
    assert translated == _translate(default_bundle, lines, uncached)[0]
    assert stats.sentences == stats.decoded + stats.cached + stats.coalesced == 200
    assert stats.decoded < 20


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "latin-1", "cp1252"])
def test_lines_are_read_and_written_in_their_encoding(default_bundle: Bundle, codec: str) -> None:
    text = "Good morning.\r\nThe café is large.\n\u0a0a\n"
    text = text.replace("\u0a0a\n", "") if codec in ("latin-1", "cp1252") else text
    for named in (None, codec):
        sink = io.BytesIO()
        options = OfflineOptions(
            threads=1, decoding=DecodingOptions(beam_size=1), format_options=FormatOptions(encoding=named)
        )
        translate_file([default_bundle], io.BytesIO(text.encode(codec)), sink, options)
        first, *others = sink.getvalue().decode(codec).split("\n")
        assert first.startswith("Guten")
        assert len(others) == text.count("\n")


def test_lines_before_one_that_is_not_utf8_are_translated(default_bundle: Bundle) -> None:
    sink = io.BytesIO()
    utf8 = FormatOptions(encoding="utf-8")
    options = OfflineOptions(threads=1, decoding=DecodingOptions(beam_size=1), format_options=utf8)
    with pytest.raises(UndecodableInput):
        translate_file([default_bundle], io.BytesIO(b"Yes.\nNo.\nTea\xff\n"), sink, options)
    assert sink.getvalue().count(b"\n") == 2


def test_a_required_phrase_stands_between_word_boundaries(default_bundle: Bundle) -> None:
    sink = io.BytesIO()
    options = OfflineOptions(threads=1, decoding=DecodingOptions(required_phrases=("Hand",)))
    translate_file([default_bundle], io.BytesIO(b"I would like a cup of tea.\nThe house is old.\n"), sink, options)
    lines = sink.getvalue().decode().splitlines()
    assert [re.search(r"\bHand\b", line) is not None for line in lines] == [True, True], lines
