"""Every compiled loop of the package: arrays and scalars in, arrays out.

The modules here import numpy and numba alone. Each kernel has a slow, obvious twin in the tests.
"""
