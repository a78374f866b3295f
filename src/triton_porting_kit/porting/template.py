"""`Template`: the template of a kit, as files, and those of earlier releases, as archives beside it.

A release is ``releases/VERSION.tar.xz``: what `copier.yml` and `template/` were when the kit VERSION was released. It
is written once (`make release-template`) and never changed: repositories were made from it.
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
"""What belongs to a template, in its folder."""
ANSWERS = ".copier-answers.yml"
"""In a repository: what it was made from."""


@dataclass(frozen=True)
class Template:
    """A template, with those that it came from."""

    root: Path
    """The folder with `copier.yml`, `template/` and `releases/`."""
    version: str
    """Of the kit that it belongs to."""

    @classmethod
    def own(cls) -> Template:
        """That of this kit."""
        import triton_porting_kit.backend_template as package

        return cls(Path(package.__path__[0]), triton_porting_kit.__version__)

    def archive(self, version: str) -> Path:
        """Where a release is, or would be."""
        return self.root / "releases" / f"{version}.tar.xz"

    def versions(self) -> list[str]:
        """All that there are, the oldest first; the last is this one."""
        released = {path.name.removesuffix(".tar.xz") for path in self.root.glob("releases/*.tar.xz")}
        return sorted({*released, self.version}, key=Version)

    def files(self) -> Iterator[tuple[str, bytes, bool]]:
        """Every file: its path below the root, its content, and whether it can be executed; sorted by path."""
        paths = (path for part in PARTS for path in (self.root / part, *(self.root / part).rglob("*")))
        for path in sorted(path for path in paths if path.is_file()):
            if "__pycache__" not in path.parts:
                name = path.relative_to(self.root).as_posix()
                yield name, path.read_bytes(), bool(path.stat().st_mode & 0o100)

    def write(self, version: str, folder: Path) -> None:
        """Write the files of a version into a folder. Raises `TemplateError` for a version that is not there."""
        files = self.files() if version == self.version else read_archive(self.archive(version))
        for name, content, executable in files:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o755 if executable else 0o644)

    def release(self) -> Path:
        """Write this version's archive, or see that it is as it was. Raises `TemplateError` if it has changed."""
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
        """Files that are not as they were when this version was released; empty if it was not."""
        path = self.archive(self.version)
        if not path.exists():
            return []
        now, then = ({name: rest for name, *rest in files} for files in (self.files(), read_archive(path)))
        return sorted(name for name in {*now, *then} if now.get(name) != then.get(name))


def pack(files: Iterator[tuple[str, bytes, bool]]) -> bytes:
    """An archive in which nothing says when, where and by whom it was made."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content, executable in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o755 if executable else 0o644
            archive.addfile(member, io.BytesIO(content))
    return lzma.compress(buffer.getvalue(), preset=9)


def read_archive(path: Path) -> Iterator[tuple[str, bytes, bool]]:
    """The files of an archive, as `Template.files` gives them. Raises `TemplateError` if it cannot be read."""
    try:
        with tarfile.open(path, "r:xz") as archive:
            for member in archive:
                content = archive.extractfile(member)
                if content is not None:
                    yield member.name, content.read(), bool(member.mode & 0o100)
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        raise TemplateError(f"{path} cannot be read ({error}): install the kit again") from error


def version_of(text: str) -> Version | None:
    """A version, or None where the text is none."""
    try:
        return Version(text)
    except ValueError:  # InvalidVersion, or a number of thousands of digits
        return None


def main(arguments: Sequence[str]) -> None:
    """Release the template of a source tree's folder, by default of this one, as this kit's version."""
    own = Template.own()
    try:
        print(Template(Path(arguments[0]), own.version).release() if arguments else own.release())
    except TemplateError as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main(sys.argv[1:])
