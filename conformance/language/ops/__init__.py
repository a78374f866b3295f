"""The table's entries, a module for each section."""
