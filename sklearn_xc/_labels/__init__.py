"""Names of labels, and which of them an answer may hold."""
