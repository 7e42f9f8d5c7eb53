"""What NGAME runs: clusters, triplets, the encoder's block, pairs, the tree that fuses scores."""
