"""Means of what weights go through."""

from sklearn_xc._compile.jit import kernel


@kernel
def blend(mean, values, scale, share):
    """Move a mean towards ``scale * values`` by a share of the way: all of it for 1.

    Parameters
    ----------
    mean : ndarray of float of shape (n_rows, dim)
        Changed.
    values : ndarray of float of shape (n_rows, >= dim)
        Further columns are not looked at.
    scale, share : float
        Of the dtype of the mean; the share is between 0 and 1.
    """
    for i in range(mean.shape[0]):
        for j in range(mean.shape[1]):
            mean[i, j] += share * (scale * values[i, j] - mean[i, j])
