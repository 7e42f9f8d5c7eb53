"""Which fold each row goes to."""
