"""Bundles with a lexical shortlist, in both precisions and with both kinds of decoders."""

import math
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bundle.loading import Bundle, load_bundle
from bundle.manifest import BundleError
from bundle.shortlist import Shortlist
from bundle.tensors import SHORTLIST_FILE, Precision
from export.exporter import export_bundle
from export.shortlist import add_shortlist
from server.engine.shortlist import ListedTokens
from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, Request, SentenceParams
from tests.end_to_end.exported import Exported, driven_engine
from tests.fakes.engine import request
from tests.model.families.marian.random_files import MarianShape, write_random_model

VOCAB = 61
SOURCES = [[3 + (7 * i + 11 * k) % 50 for k in range(1 + i % 9)] + [0] for i in range(24)]
GREEDY = SentenceParams(max_new_tokens=20, uses_shortlist=True)
BEAM = SentenceParams(max_new_tokens=20, beam_size=3, num_hypotheses=2, uses_shortlist=True)
ALL_TOKENS = SentenceParams(max_new_tokens=20, beam_size=2)


@pytest.fixture(params=["int8", "float32", "recurrent int8"])
def bundle(
    request: pytest.FixtureRequest,
    exported: Callable[[Precision], Exported],
    exported_recurrent: Callable[[Precision], Exported],
    tmp_path: Path,
) -> Bundle:
    """A copy with a shortlist that has few tokens besides the 32 of every list."""
    kind, _, precision = request.param.rpartition(" ")
    original = (exported_recurrent if kind else exported)(precision).bundle
    copied = Path(shutil.copytree(original.path, tmp_path / "bundle"))
    shortlist = tmp_path / "lex.bin"
    lists = [[(token * 13 + 5) % VOCAB, (token * 29 + 1) % VOCAB] for token in range(VOCAB)]
    shortlist.write_bytes(Shortlist.of_lists(3, lists).to_bytes())
    add_shortlist(load_bundle(copied), shortlist)
    return load_bundle(copied)


def _answers(completion: Completion) -> list[tuple[list[int], str]]:
    return [(each.token_ids, repr(each.log_probability)) for each in completion.hypotheses]


def _requests() -> list[Request]:
    params = (GREEDY, BEAM, ALL_TOKENS)
    return [request(source, params[index % 3]) for index, source in enumerate(SOURCES)]


def test_a_request_has_the_tokens_of_its_list_and_the_same_ones_alone(bundle: Bundle) -> None:
    listed: ListedTokens = ListedTokens.open(bundle)
    together = driven_engine(bundle).run(_requests())
    beyond_the_list = 0
    for each, completion in zip(_requests(), together, strict=True):
        alone = driven_engine(bundle).run([each])[0]
        found = {token for hypothesis in completion.hypotheses for token in hypothesis.token_ids}
        is_within = found <= set(listed.of(each.source).tolist())
        if each.params.uses_shortlist:
            assert is_within
        beyond_the_list += not is_within
        tokens = [tokens for tokens, _ in _answers(completion)]
        assert tokens == [tokens for tokens, _ in _answers(alone)]
        if bundle.config.precision == "int8":
            assert _answers(completion) == _answers(alone)
    assert beyond_the_list > 0


def test_a_shortlist_of_all_tokens_changes_nothing(bundle: Bundle, tmp_path: Path) -> None:
    whole = tmp_path / "whole.bin"
    whole.write_bytes(Shortlist.of_lists(VOCAB, [[]] * VOCAB).to_bytes())
    bundle = add_shortlist(bundle, whole)
    listed, all_tokens = (
        driven_engine(load_bundle(bundle.path)).run(
            [request(source, SentenceParams(max_new_tokens=20, uses_shortlist=uses)) for source in SOURCES]
        )
        for uses in (True, False)
    )
    assert [each.hypotheses[0].token_ids for each in listed] == [each.hypotheses[0].token_ids for each in all_tokens]


def test_options_that_name_tokens_see_all_of_them(bundle: Bundle) -> None:
    source = SOURCES[5]
    listed = set(ListedTokens.open(bundle).of(np.array(source, np.int32)).tolist())
    others = [token for token in range(3, VOCAB - 1) if token not in listed]
    required = (others[0], others[1])
    engine = driven_engine(bundle)

    def best(**options: object) -> list[int]:
        params = SentenceParams(max_new_tokens=20, uses_shortlist=True, **options)  # type: ignore[arg-type]
        (completion,) = engine.run([request(source, params)])
        return completion.hypotheses[0].token_ids

    assert best(target_prefix=required)[:2] == list(required)
    found = best(beam_size=4, required_phrases=(required,))
    assert required in pairwise(found)
    found = best(beam_size=4, required_terms=((required[:1],),))
    assert required[0] in found
    # A rule over whole rows sees what it saw without a shortlist.
    options = DecodingOptions(no_repeat_ngram_size=2)
    free = SentenceParams(options, max_new_tokens=20)
    assert best(options=options) == engine.run([request(source, free)])[0].hypotheses[0].token_ids
    (scored,) = engine.run([request(source, SentenceParams(forced_target=(*required, 0), uses_shortlist=True))])
    assert math.isfinite(scored.hypotheses[0].log_probability)


def test_an_export_rejects_a_damaged_shortlist_before_its_work(tmp_path: Path) -> None:
    folder = write_random_model(tmp_path / "student", MarianShape())
    (folder / "model.npz").rename(folder / "model.ende.npz")
    (folder / "lex.50.50.ende.s2t.bin").write_bytes(Shortlist.of_lists(8, [[1], [2, 3]]).to_bytes()[:-1])
    phases: list[str] = []
    with pytest.raises(BundleError, match="truncated"):
        export_bundle(folder, tmp_path / "other", "int8", report=phases.append)
    assert phases == ["reading the checkpoint"]
    assert not (tmp_path / "other").exists()


def test_a_bundle_lacks_nothing_that_its_shortlist_needs(bundle: Bundle) -> None:
    bundle.file(SHORTLIST_FILE).write_bytes(b"other")
    with pytest.raises(BundleError, match=SHORTLIST_FILE):
        load_bundle(bundle.path)
