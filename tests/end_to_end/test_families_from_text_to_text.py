"""Checkpoints of every family with their tokenizers, from text to text, against transformers."""

from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.in_process import InProcessEngine
from export.exporter import export_bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.request import SentenceParams
from server.text.tokenizers.registry import open_tokenizer
from server.translation.engine_requests import first_token
from tests.model.families.family_checkpoints import FAMILIES, SENTENCES, write_family

NUM_NEW_TOKENS = 12
# The others have the architecture and the kind of tokenizer of one of these.
DIFFERENT = [family for family in FAMILIES if family not in ("bart", "pegasus", "mbart50", "nllb")]


@pytest.mark.parametrize("family", DIFFERENT)
def test_a_family_answers_with_the_text_of_the_reference(family: str, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    saved = write_family(family, tmp_path / "checkpoint")
    bundle = export_bundle(saved.folder, tmp_path / "bundle", "float32")
    config, tokenizer = bundle.config, open_tokenizer(bundle)
    source, target = (config.language_aliases.get(each, each) for each in (saved.source, saved.target))
    assert source in config.source_languages
    assert target in config.target_languages

    texts = [text[:30] for text in SENTENCES[:5]]
    reference_tokenizer: Any = saved.tokenizer
    prompt = config.tokenizer.prompts.get(target, "")
    first = first_token(config, target)
    for beam_size in (1, 4):
        params = SentenceParams(
            DecodingOptions(max_repetitions=0), beam_size=beam_size, max_new_tokens=NUM_NEW_TOKENS, first_token=first
        )
        completions = InProcessEngine(bundle).decode([tokenizer.encode(t, target, source) for t in texts], params)
        answers = [completion.hypotheses[0].token_ids for completion in completions]
        for text, answer in zip(texts, answers, strict=True):
            inputs = reference_tokenizer(prompt + text, return_tensors="pt")
            with torch.no_grad():
                (output,) = saved.reference.generate(
                    input_ids=inputs.input_ids,
                    attention_mask=inputs.attention_mask,
                    num_beams=beam_size,
                    max_new_tokens=NUM_NEW_TOKENS,
                    forced_bos_token_id=first,
                )
            expected = [id_ for id_ in output[1:].tolist() if id_ != config.special_tokens.end_of_sequence]
            assert answer == expected
            shown = reference_tokenizer.decode([id_ for id_ in expected if id_ != first], skip_special_tokens=True)
            # The reference shows the tokens of languages in M2M100 as text.
            assert "__" in shown or tokenizer.decode(answer) == shown
