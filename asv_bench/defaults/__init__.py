"""Are the defaults those to defend? Every estimator on every set, at three sizes."""
