"""The table's entries, one module per section."""
