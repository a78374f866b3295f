"""`python -m triton_porting_kit.cli`."""

from triton_porting_kit.cli import main

main()
