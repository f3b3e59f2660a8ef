"""Initial vocabulary, weights and corpus of a run."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import torch

from model.checkpoints.weights import build_model
from model.config import TransformerConfig
from model.families.marian.writing import require_marian
from model.families.registry import read_checkpoint
from model.training.augmentation import Augmentation
from model.training.corpus import Corpus, read_corpus
from model.training.parallel_text import read_pairs
from model.training.run_folder import RunFolder
from model.training.settings import TrainingSettings
from model.training.vocabulary import JointVocabulary, read_vocabulary, train_vocabulary
from model.transformer import Transformer


def prepare_vocabulary(settings: TrainingSettings, run: RunFolder) -> JointVocabulary:
    """Return the vocabulary of a resumed run's checkpoint, else of `settings.initial`, else a new one.

    Without a saved state, the folder's checkpoint is ignored: it can be from other text.
    """
    if run.has_state():
        return read_vocabulary(run.checkpoint)
    if settings.initial is not None:
        vocabulary = read_vocabulary(Path(settings.initial))
        return vocabulary.with_split_digits() if settings.split_digits else vocabulary
    return train_vocabulary(_all_texts(settings), settings.vocab_size, split_digits=settings.split_digits)


def prepare_model(settings: TrainingSettings, vocabulary: JointVocabulary) -> Transformer:
    """Set the seed and return the model of `settings.initial`, or a random one of the sizes in the settings."""
    torch.manual_seed(settings.seed)
    if settings.initial is not None:
        initial = read_checkpoint(settings.initial)
        if not (initial.config.tie_embeddings and initial.config.tie_output):
            raise ValueError(
                f"{settings.initial}: training requires a model with one weight for both embeddings and the output"
            )
        require_marian(initial.config)  # before the first update, not at the first checkpoint
        return build_model(replace(initial, config=replace(initial.config, dropout=settings.dropout)))
    return Transformer(
        TransformerConfig(
            vocab_size=len(vocabulary),
            pad_token_id=vocabulary.padding,
            eos_token_id=vocabulary.end,
            bos_token_id=vocabulary.end,
            decoder_start_token_id=vocabulary.padding,
            d_model=settings.d_model,
            num_heads=settings.num_heads,
            feed_forward_width=settings.feed_forward_width,
            num_encoder_layers=settings.num_encoder_layers,
            num_decoder_layers=settings.num_decoder_layers,
            dropout=settings.dropout,
            sinusoid_layout="halves",
            output_bias=True,
            max_source_tokens=settings.max_sentence_tokens,
            max_target_tokens=settings.max_sentence_tokens,
            suppressed_token_ids=(vocabulary.padding,),
            forced_eos=True,
        )
    )


def prepare_corpus(settings: TrainingSettings, vocabulary: JointVocabulary, start: int) -> Corpus:
    """Read the pairs of all files and make the additional ones. Raises ValueError as `read_corpus` does."""
    return read_corpus(
        settings.data,
        vocabulary,
        start,
        settings.max_sentence_tokens,
        settings.languages,
        swap_columns=settings.swap_columns,
        augmentation=Augmentation(settings.augmentation, settings.languages, settings.seed),
    )


def _all_texts(settings: TrainingSettings) -> Iterator[str]:
    pairs = (read_pairs(Path(file.path), settings.languages) for file in settings.data)
    return chain.from_iterable(chain.from_iterable(pairs))
