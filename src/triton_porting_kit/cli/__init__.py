"""The command `tpk`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from triton_porting_kit.cli.errors import UserError
from triton_porting_kit.errors import PortingKitError
from triton_porting_kit.untrusted import shown


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `tpk` with these arguments (by default those of the process) and exit.

    Exit status 1: an error, such as a kernel that does not compile. Exit status 2: the command line is wrong.
    """
    from triton_porting_kit.cli.app import app

    try:
        app(args=None if arguments is None else list(arguments), prog_name="tpk")
    except UserError as error:
        print(f"tpk: {shown(error)}", file=sys.stderr)
        sys.exit(2)
    except PortingKitError as error:
        print(f"tpk: {shown(error)}", file=sys.stderr)
        sys.exit(1)


__all__ = ["main"]
