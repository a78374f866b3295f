"""The adapter from a `Pipeline` to Triton's ``BaseBackend``. A vendor's compiler derives from it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from triton.backends.compiler import BaseBackend, GPUTarget

from triton_porting_kit.compiler import custom_types, integrity, record
from triton_porting_kit.compiler.options import KernelOptions
from triton_porting_kit.compiler.pipeline import Pipeline
from triton_porting_kit.errors import OptionError
from triton_porting_kit.toolchain import cache_manager, compat

if TYPE_CHECKING:
    from triton_porting_kit.chips import ChipDescription


class PipelineBackend(BaseBackend):  # type: ignore[misc]
    """A Triton compiler that runs a pipeline.

    A subclass names its target in `name`, and implements `pipeline`, `default_options` and `version`.
    """

    name: ClassVar[str]
    """Name of the target, as in ``GPUTarget(name, arch, warp_size)`` and ``TRITON_DEFAULT_BACKEND``."""

    binary_ext: str
    """Name of the last stage: the artefact that the driver loads."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in vars(cls):
            compat.provide_extra(cls.name, cls.libdevice)

    def __init__(self, target: GPUTarget) -> None:
        compat.check_release()
        cache_manager.mend_cache()
        super().__init__(target)
        self.binary_ext = self.pipeline(self.parse_options({})).names[-1]

    @staticmethod
    @abstractmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether this backend compiles for `target`. At most one backend may return true."""

    @classmethod
    def architectures(cls) -> tuple[str, ...]:
        """The names that ``--arch`` accepts on machines without a device; empty for a backend of one architecture."""
        return ()

    @classmethod
    def target_of(cls, arch: str) -> GPUTarget:
        """The target for one of `architectures`. Raises `OptionError`, which lists them, for any other name."""
        known = ", ".join(cls.architectures())
        raise OptionError(
            f"backend {cls.name} has no architecture {arch!r}",
            remedy=f"give one of {known}" if known else "leave it out: this backend takes no architecture",
        )

    @classmethod
    def isa_levels(cls) -> Mapping[str, Mapping[str, str]]:
        """The instruction-set levels that this machine runs: launch options that compile for each, by level name."""
        return {}

    @abstractmethod
    def pipeline(self, options: Any) -> Pipeline:
        """The stages for these options, the first of which is ``ttir``."""

    @abstractmethod
    def default_options(self) -> Mapping[str, Any]:
        """Options of this backend, and its defaults for Triton's own options."""

    @abstractmethod
    def version(self) -> str:
        """Identifies this compiler in cache keys: kernels of another version are compiled again."""

    def minimum_dot_shape(self, lhs_type: Any, rhs_type: Any) -> tuple[int, int, int]:
        """Smallest M, N, K of ``tl.dot`` on these operand types."""
        return (1, 1, 1)

    @classmethod
    def libdevice(cls) -> ModuleType | None:
        """The module to use as ``triton.language.extra.libdevice`` in kernels, if there is one.

        Its functions are also those of ``triton.language.extra.<name>.libdevice``, which libraries import by `name`.
        """
        return None

    def chip(self) -> ChipDescription | None:
        """The chip with on-chip memory that this backend compiles for; None for any other."""
        return None

    # --- Triton's interface ----------------------------------------------------------------------

    def hash(self) -> str:
        return f"{self.name}-{self.version()}-{self.target}"

    def parse_options(self, options: dict[str, Any]) -> KernelOptions:
        """The options of one compilation, from the keyword arguments of a launch."""
        defaults = {
            "backend_name": self.name,
            "arch": self.target.arch,
            "warp_size": self.target.warp_size,
            "offsets_may_wrap": False,
        }
        parsed = KernelOptions(options, {**defaults, **self.default_options()})
        parsed.__dict__["enable_fp_fusion"] = compat.fp_fusion(options.get("enable_fp_fusion"))
        return parsed

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any = None) -> None:
        if compat.is_gluon(language):
            raise compat.unsupported_language(self.name)
        record.add_recorded(self.pipeline(options), stages)
        compat.inspect_stages(self, stages, options, language)

    def load_dialects(self, context: Any) -> None:
        """Nothing to do: Triton loads its own dialects, and the kit's stages do not use Triton's context."""

    def get_codegen_implementation(self, options: Any) -> dict[str, Any]:
        return {
            "min_dot_size": self.minimum_dot_shape,
            "convert_custom_types": custom_types.convert_float8e4b15,
        }

    def get_module_map(self) -> dict[str, ModuleType]:
        module = self.libdevice()
        return {} if module is None else {"triton.language.extra.libdevice": module}

    def pack_metadata(self, metadata: Any) -> tuple[int, int, int]:
        """Check the cached files of a kernel.

        Triton calls this for every kernel that it is about to use, cached or not.
        """
        integrity.check_cached(metadata, self)
        return (metadata.num_warps, metadata.num_ctas, metadata.shared)
