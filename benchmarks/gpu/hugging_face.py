"""Tokens per second of Hugging Face `generate` with a random model of the same size, in float16 on a GPU."""

import time
from statistics import median

import torch

from benchmarks.gpu.measuring import SOURCE_TOKENS, Window
from benchmarks.gpu.models import Size


def tokens_per_second(size: Size, device: str, rows: int, beam_size: int, window: Window, *, compiled: bool) -> float:
    """Return output tokens per second, in batches of as many sentences as fill the rows."""
    from transformers import MarianConfig, MarianMTModel

    pad = size.vocab_size - 1
    config = MarianConfig(
        vocab_size=size.vocab_size,
        decoder_vocab_size=size.vocab_size,
        d_model=size.d_model,
        encoder_layers=size.num_layers,
        decoder_layers=size.num_layers,
        encoder_attention_heads=size.num_heads,
        decoder_attention_heads=size.num_heads,
        encoder_ffn_dim=size.feed_forward_width,
        decoder_ffn_dim=size.feed_forward_width,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=size.max_tokens,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        pad_token_id=pad,
        eos_token_id=0,
        decoder_start_token_id=pad,
        forced_eos_token_id=None,
    )
    torch.manual_seed(1)
    model = MarianMTModel(config).to(device)
    model.train(False)
    if device == "cuda":
        model.half()
    if compiled:
        model.generation_config.cache_implementation = "static"
        model.forward = torch.compile(model.forward, mode="reduce-overhead")
    num_sentences = max(rows // beam_size, 1)
    sources = torch.randint(2, pad, (num_sentences, SOURCE_TOKENS), device=device)

    def generate() -> float:
        _synchronize(device)
        started = time.perf_counter()
        with torch.inference_mode():
            model.generate(
                input_ids=sources,
                attention_mask=torch.ones_like(sources),
                num_beams=beam_size,
                do_sample=False,
                min_new_tokens=window.answer_tokens,
                max_new_tokens=window.answer_tokens,
            )
        _synchronize(device)
        return num_sentences * window.answer_tokens / (time.perf_counter() - started)

    generate()
    return median(generate() for _ in range(window.repetitions))


def _synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
