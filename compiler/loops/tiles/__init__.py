"""Tensors as functions of a point, and the loops over the points of a tile that evaluate them."""
