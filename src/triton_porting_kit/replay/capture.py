"""`Capture`: a recorded launch on disk, read and checked."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triton_porting_kit import trust, untrusted
from triton_porting_kit.errors import CaptureError
from triton_porting_kit.replay.consistency import contradictions
from triton_porting_kit.replay.manifest import NAME, READABLE, Manifest, StoredFile, digest, validate
from triton_porting_kit.replay.settings import LIMIT, parse_size
from triton_porting_kit.untrusted import Folder

REMEDY = "replay only what you recorded yourself, in a folder that only you can write to (chmod -R go-w)"


@dataclass(frozen=True)
class Capture:
    """A recorded launch on disk. Its files are unmodified and consistent, and only this user can write to them."""

    folder: Path
    manifest: Manifest
    contents: dict[str, bytes] = field(repr=False)

    def content(self, file: StoredFile) -> bytes:
        """The content of a file that the manifest names."""
        return self.contents[file.file]

    @property
    def block(self) -> bytes:
        """The packed argument block, with the recorded addresses."""
        return self.content(self.manifest.block)

    @property
    def binary(self) -> bytes:
        """The output of the compiler's last stage."""
        return self.content(self.manifest.kernel.binary)


def read(folder: Path) -> Capture:
    """Read and check the recorded launch in `folder`.

    Its binary is code that will be executed: raises `InsecureCacheError` if others can write to the folder or a file in
    it. The rest is untrusted data: raises `CaptureError` if the manifest does not match its schema or contradicts
    itself, if a file was modified or is not a regular file, or if the files exceed ``TPK_CAPTURE_LIMIT``.
    """
    with Folder(folder, CaptureError) as held:
        if not held.has(NAME):
            raise CaptureError(f"{folder} has no recorded launch: there is no {NAME}{_inside(folder)}")
        trust.check_way(folder, REMEDY)
        for place in (folder.resolve(), folder / NAME):
            trust.check_private(place, REMEDY)
        manifest = Manifest.from_json(_document(held.read(NAME, untrusted.MANIFEST), folder / NAME))
        limit = parse_size(os.environ.get(LIMIT, ""))
        contents: dict[str, bytes] = {}
        for stored in manifest.stored():
            if stored.file not in contents:
                trust.check_private(folder / stored.file, REMEDY)
                left = limit - sum(map(len, contents.values()))
                remedy = f"record the launch again, or set {LIMIT} to more if you recorded it"
                contents[stored.file] = held.read(stored.file, left, remedy)
            if hashlib.sha256(contents[stored.file]).hexdigest() != stored.sha256:
                raise CaptureError(
                    f"{folder / stored.file} was modified: its SHA-256 differs; record the launch again"
                )
    sizes = {name: len(content) for name, content in contents.items()}
    if wrong := next(contradictions(manifest, sizes), ""):
        raise CaptureError(f"{folder / NAME} is inconsistent: {wrong}; record the launch again")
    return Capture(folder, manifest, contents)


def launches_in(folder: Path) -> list[Path]:
    """The folders of recorded launches in `folder`, in order."""
    return sorted(path.parent for path in folder.glob(f"[0-9]*/{NAME}"))


def _inside(folder: Path) -> str:
    found = launches_in(folder) if folder.is_dir() else []
    return f"; name one of the folders in it, such as {found[-1]}" if found else ""


def _document(content: bytes, path: Path) -> dict[str, Any]:
    data = untrusted.parse_json(content, path, CaptureError)
    if isinstance(data, dict) and data.get("format") not in READABLE:
        known = " and ".join(map(str, READABLE))
        raise CaptureError(
            f"{path} has format {data.get('format')!r:.80}, and this kit reads {known}; use the kit that recorded it"
        )
    validate(data, str(path))
    assert isinstance(data, dict)
    if data["digest"] != digest(data):
        raise CaptureError(f"{path} was modified: its digest differs; record the launch again")
    return data
