"""Reports: what a run left in its folder, as report.json, junit.xml and report.html, and what is done with them.

`build.write_reports` makes them. `verify`, `merge` and `diff` are behind `tpk verify` and `tpk report`.
"""
