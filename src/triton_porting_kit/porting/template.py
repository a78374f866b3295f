"""`Template`: the files of this kit's template, and the archives of the templates of earlier releases.

A release is ``releases/VERSION.tar.xz``: `copier.yml` and `template/` of the release VERSION of the kit. It is written
once (`make release-template`) and never changed, because repositories were created from it.
"""

from __future__ import annotations

import io
import lzma
import sys
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

import triton_porting_kit
from triton_porting_kit.errors import TemplateError

PARTS = ("copier.yml", "template")
"""The parts of a template, in its folder."""
ANSWERS = ".copier-answers.yml"
"""The file in a repository that records how it was created."""


@dataclass(frozen=True)
class Template:
    """A template, with the templates of earlier releases."""

    root: Path
    """The folder with `copier.yml`, `template/` and `releases/`."""
    version: str
    """The version of the kit."""

    @classmethod
    def own(cls) -> Template:
        """The template of this kit."""
        import triton_porting_kit.backend_template as package

        return cls(Path(package.__path__[0]), triton_porting_kit.__version__)

    def archive(self, version: str) -> Path:
        """The path of a release, whether or not it exists."""
        return self.root / "releases" / f"{version}.tar.xz"

    def versions(self) -> list[str]:
        """All versions, the oldest first; the last is this kit's."""
        released = {path.name.removesuffix(".tar.xz") for path in self.root.glob("releases/*.tar.xz")}
        return sorted({*released, self.version}, key=Version)

    def files(self) -> Iterator[tuple[str, bytes, bool]]:
        """All files, sorted by path: path below the root, content, and whether it is executable."""
        paths = (path for part in PARTS for path in (self.root / part, *(self.root / part).rglob("*")))
        for path in sorted(path for path in paths if path.is_file()):
            if "__pycache__" not in path.parts:
                name = path.relative_to(self.root).as_posix()
                yield name, path.read_bytes(), bool(path.stat().st_mode & 0o100)

    def write(self, version: str, folder: Path) -> None:
        """Write the files of a version to a folder. Raises `TemplateError` for an unknown version."""
        files = self.files() if version == self.version else read_archive(self.archive(version))
        for name, content, executable in files:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o755 if executable else 0o644)

    def release(self) -> Path:
        """Write this version's archive, or check an existing one. Raises `TemplateError` if the template changed."""
        path = self.archive(self.version)
        if path.exists():
            if changed := self.changed():
                raise TemplateError(
                    f"{path.name} is released, and {', '.join(changed)} changed since: give the kit another version"
                )
            return path
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pack(self.files()))
        return path

    def changed(self) -> list[str]:
        """The files that changed since this version was released; empty if it was not released."""
        path = self.archive(self.version)
        if not path.exists():
            return []
        now, then = ({name: rest for name, *rest in files} for files in (self.files(), read_archive(path)))
        return sorted(name for name in {*now, *then} if now.get(name) != then.get(name))


def pack(files: Iterator[tuple[str, bytes, bool]]) -> bytes:
    """A reproducible archive, without dates, owners and places."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content, executable in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o755 if executable else 0o644
            archive.addfile(member, io.BytesIO(content))
    return lzma.compress(buffer.getvalue(), preset=9)


def read_archive(path: Path) -> Iterator[tuple[str, bytes, bool]]:
    """The files of an archive, as from `Template.files`. Raises `TemplateError` if it cannot be read."""
    try:
        with tarfile.open(path, "r:xz") as archive:
            for member in archive:
                content = archive.extractfile(member)
                if content is not None:
                    yield member.name, content.read(), bool(member.mode & 0o100)
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        raise TemplateError(f"{path} cannot be read ({error}): install the kit again") from error


def version_of(text: str) -> Version | None:
    """Parse a version; None if the text is not a version."""
    try:
        return Version(text)
    except ValueError:  # InvalidVersion, or a number with thousands of digits.
        return None


def main(arguments: Sequence[str]) -> None:
    """Release the template in a folder of a source tree, by default this kit's, as this kit's version."""
    own = Template.own()
    try:
        print(Template(Path(arguments[0]), own.version).release() if arguments else own.release())
    except TemplateError as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main(sys.argv[1:])
