"""How work is cut, bounded in memory, stopped and told of; nothing here knows what is trained."""
