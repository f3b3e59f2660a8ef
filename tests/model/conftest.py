import os

import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"  # before huggingface_hub is imported: it reads this once


@pytest.fixture(autouse=True)
def _one_thread_and_a_seed() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(20170612)
