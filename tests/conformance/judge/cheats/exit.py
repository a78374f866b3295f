"""Ends the process with status 0 when it is imported.

Published: METR, Recent Frontier Models Are Reward Hacking: exits before it is checked.
https://metr.org/blog/2025-06-05-recent-reward-hacking
"""

import sys

print("PASS")
sys.exit(0)
