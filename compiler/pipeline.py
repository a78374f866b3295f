"""A compiler as an ordered list of named stages, and the interface by which Triton runs them.

Each stage takes the artefact of the previous one. An artefact is anything whose ``str()`` (or ``bytes``) Triton can
cache and dump. The first stage of a run gets the text of a file instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

Metadata = MutableMapping[str, Any]
StageFunction = Callable[[Any, Metadata], Any]
StageCheck = Callable[[Any], None]


@dataclass(frozen=True)
class Stage:
    """One lowering step. `name` is also the artefact's file extension and its key in ``kernel.asm``.

    `run` takes the artefact of the previous stage (or the text of its file) and the metadata, which it may extend. It
    returns the artefact of this stage: text or anything that prints as text, or bytes.
    """

    name: str
    run: StageFunction
    check: StageCheck | None = None
    """Raises if its argument, the content of a user's override file, cannot be an artefact of this stage."""


@dataclass(frozen=True)
class Pipeline:
    """Stages in order. Pipelines are values: every change returns a new one."""

    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        names = self.names
        if len(set(names)) != len(names):
            raise ValueError(f"stage names are not unique: {', '.join(names)}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the stages, in order."""
        return tuple(stage.name for stage in self.stages)

    def index(self, name: str) -> int:
        """Position of a stage. Raises ValueError that lists the stages there are."""
        if name not in self.names:
            raise ValueError(f"there is no stage {name!r}; the stages are {', '.join(self.names)}")
        return self.names.index(name)

    def replace(self, name: str, stage: Stage) -> Pipeline:
        """A pipeline with `stage` instead of the one called `name`."""
        at = self.index(name)
        return Pipeline((*self.stages[:at], stage, *self.stages[at + 1 :]))

    def insert_before(self, name: str, stage: Stage) -> Pipeline:
        """A pipeline with `stage` right before the one called `name`."""
        at = self.index(name)
        return Pipeline((*self.stages[:at], stage, *self.stages[at:]))

    def insert_after(self, name: str, stage: Stage) -> Pipeline:
        """A pipeline with `stage` right after the one called `name`."""
        at = self.index(name) + 1
        return Pipeline((*self.stages[:at], stage, *self.stages[at:]))

    def until(self, name: str) -> Pipeline:
        """The pipeline up to and including the stage called `name`."""
        return Pipeline(self.stages[: self.index(name) + 1])

    def after(self, name: str) -> Pipeline:
        """The stages after the one called `name`, which complete the compilation of its artefact."""
        return Pipeline(self.stages[self.index(name) + 1 :])

    def run(self, source: Any, metadata: Metadata) -> Mapping[str, Any]:
        """Run every stage on `source`; returns all artefacts by stage name."""
        artefacts: dict[str, Any] = {}
        for stage in self.stages:
            source = artefacts[stage.name] = stage.run(source, metadata)
        return artefacts

    def add_to(self, stages: MutableMapping[str, StageFunction]) -> None:
        """Fill the dictionary of Triton's ``BaseBackend.add_stages``."""
        for stage in self.stages:
            stages[stage.name] = stage.run
