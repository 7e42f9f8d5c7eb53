"""What decomposition, embedding and skip-gram share to train with mini-batches."""
