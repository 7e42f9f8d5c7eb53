"""From text to numbers of words, and from these to counts of what stands near what."""
