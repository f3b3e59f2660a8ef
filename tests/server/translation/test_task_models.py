"""Models by task: a model without hidden states does not embed."""

import re
from pathlib import Path

import pytest

from server.interface.errors import UnsupportedTask
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.task_models import TaskModels
from tests.fakes.echo import EchoGenerator, make_bundle


def test_a_model_that_only_translates_names_its_route(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path)
    models = TaskModels([Pipeline(EchoGenerator(bundle), TranslationLimits())])
    route = re.escape(f"no model here can embed; use another route: {bundle.config.name}: POST /v1/translate")
    for name in (None, bundle.config.name):
        with pytest.raises(UnsupportedTask, match=route):
            models.find("embed", name)
