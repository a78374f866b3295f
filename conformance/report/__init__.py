"""Reports of runs: report.json, junit.xml and report.html, created from a run's folder.

`build.write_reports` creates them. `verify`, `merge` and `diff` implement `tpk verify` and `tpk report`.
"""
