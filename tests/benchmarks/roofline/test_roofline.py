import pytest

from benchmarks.paths import DEFAULT_BUNDLE
from benchmarks.roofline import peaks
from benchmarks.roofline.work import multiply_adds_per_token
from bundle.loading import load_bundle


def test_the_work_of_a_token_is_that_of_the_shapes() -> None:
    bundle = load_bundle(DEFAULT_BUNDLE)
    shapes = bundle.config.shapes
    width, hidden = shapes.d_model, 4 * shapes.d_model
    feed_forward = 2 * width * hidden
    encoder = shapes.num_encoder_layers * (4 * width * width + feed_forward)
    cross = shapes.num_decoder_layers * 2 * width * width  # keys and values for the decoder
    decoder = shapes.num_decoder_layers * ((4 + 2) * width * width + feed_forward)
    vocabulary = -(-shapes.target_vocab_size // 64) * 64 * width  # padded to whole panels
    per_source, per_row = multiply_adds_per_token(bundle)
    assert per_source == encoder + cross
    assert per_row == pytest.approx(decoder + vocabulary, rel=0.02)


def test_registers_are_faster_than_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peaks, "_REPETITIONS", 2)
    monkeypatch.setattr(peaks, "_REGISTER_ROUNDS", 2_000_000)
    monkeypatch.setattr(peaks, "LEVELS", {"L1 cache": 16 << 10, "memory": 64 << 20})
    try:
        measured = peaks.measured_peaks()
    except peaks.NoCompiler as error:
        pytest.skip(str(error))
    assert measured.instructions in {"avx512-vnni", "avx-vnni", "avx2", "portable"}
    assert measured.registers > measured.by_level["memory"] > 1e8


def test_a_missing_compiler_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(peaks.NoCompiler, match="no-such-compiler was not found; set CC"):
        peaks.measured_peaks()
