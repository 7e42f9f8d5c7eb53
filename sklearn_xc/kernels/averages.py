"""Means of what weights go through."""

from sklearn_xc.kernels._jit import kernel


@kernel
def blend(mean, values, share):
    """Move a mean towards values by a share of the way: all of it for 1.

    Parameters
    ----------
    mean : ndarray of float of shape (n_rows, dim)
        Changed.
    values : ndarray of float of shape (n_rows, dim)
    share : float
        Between 0 and 1, of the dtype of the mean.
    """
    for i in range(mean.shape[0]):
        for j in range(mean.shape[1]):
            mean[i, j] += share * (values[i, j] - mean[i, j])
