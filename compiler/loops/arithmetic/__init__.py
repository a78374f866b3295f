"""Element-wise operations on scalars and vectors, and the elementary functions that are expanded into arithmetic."""
