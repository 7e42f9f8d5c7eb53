"""What the indexes of maximum inner product search run."""
