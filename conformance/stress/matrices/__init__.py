"""Random programs about tiled matrix products: what loads and changes the factors, sums them up and uses the sums."""
