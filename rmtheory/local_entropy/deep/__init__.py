"""Local entropy of three or more layers and of the infinite chain (docs: Beyond two layers)."""
