"""Models by task: translate, generate, embed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

from bundle.manifest import BundleConfig
from server.interface.errors import NotFound, UnsupportedTask
from server.translation.pipeline import Pipeline

Task = Literal["translate", "generate", "embed"]

_DOES: Final[Mapping[Task, Callable[[BundleConfig], bool]]] = {
    "translate": lambda config: config.translates,
    "generate": lambda config: config.generation is not None,
    "embed": lambda config: config.embeds,
}
_ROUTES: Final[Mapping[Task, str]] = {
    "translate": "POST /v1/translate",
    "generate": "POST /v1/generate",
    "embed": "POST /v1/embed",
}


def tasks_of(config: BundleConfig) -> list[Task]:
    """Return the tasks of a model."""
    return [task for task, does in _DOES.items() if does(config)]


class TaskModels:
    """The models of a server by task. The first one for a task serves requests that name no model."""

    def __init__(self, pipelines: Sequence[Pipeline]) -> None:
        self._pipelines = {pipeline.bundle.config.name: pipeline for pipeline in pipelines}

    def find(self, task: Task, name: str | None = None) -> Pipeline:
        """Return the model with this name, or the first model for a task.

        Raises `NotFound` for an unknown name, and `UnsupportedTask` with the routes of the models that there are.
        """
        able = {each: pipeline for each, pipeline in self._pipelines.items() if task in _tasks(pipeline)}
        if name is not None and name not in self._pipelines:
            available = ", ".join(able) or "none"
            raise NotFound(f"no model has the name {name}; available for {_ROUTES[task]}: {available}")
        chosen = able if name is None else {each: able[each] for each in able if each == name}
        if not chosen:
            others = [self._pipelines[name]] if name is not None else list(self._pipelines.values())
            raise UnsupportedTask(no_model_for(task, [pipeline.bundle.config for pipeline in others]))
        return next(iter(chosen.values()))


def no_model_for(task: Task, configs: Sequence[BundleConfig]) -> str:
    """Return the message for a task that none of these models has: what each does, and by which route."""
    routes = [f"{config.name}: {_routes(config)}" for config in configs]
    return f"no model here can {task}; use another route: {'; '.join(routes)}"


def _tasks(pipeline: Pipeline) -> list[Task]:
    return tasks_of(pipeline.bundle.config)


def _routes(config: BundleConfig) -> str:
    return " or ".join(_ROUTES[task] for task in tasks_of(config)) or "none"
