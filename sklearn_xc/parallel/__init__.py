"""How work is cut, bounded in memory and stopped; nothing here knows an estimator."""
