"""Steps of rows of weights, and means of what they go through."""
