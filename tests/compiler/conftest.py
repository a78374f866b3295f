"""Puts this folder on the path: its tests share `ttir_source`."""
