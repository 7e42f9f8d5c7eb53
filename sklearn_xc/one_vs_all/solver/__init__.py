"""Newton-CG for blocks of labels, with working sets of rows."""
