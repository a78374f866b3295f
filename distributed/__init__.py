"""Groups of ranks with symmetric memory, on the devices of a Triton backend, and collectives on them.

`open_group` makes a process a rank of a group. Kernels use `triton_porting_kit.language`. docs/distributed.md describes
both. torch is not needed.
"""

from triton_porting_kit.distributed.collectives import Collectives
from triton_porting_kit.distributed.environment import from_environment
from triton_porting_kit.distributed.group import Group, open_group
from triton_porting_kit.distributed.rendezvous import Rendezvous

__all__ = ["Collectives", "Group", "Rendezvous", "from_environment", "open_group"]
