"""Experiments with SoftmaxUMax and ImplicitSoftmaxSGD, and the biased methods beside them."""
