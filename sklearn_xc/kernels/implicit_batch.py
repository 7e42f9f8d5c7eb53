"""The implicit update of a mini-batch: several instances that share their sampled classes.

With the notation of ``implicit_step``, instances i and sampled classes k (those of the batch, less
the instance's own), the optimality conditions are::

    log p_ik = log(A_i alpha) + x_i.(w_k - w_yi) - u_i
    w_k = (w~_k + sum_i L_ik x_i) / c_k         L_ik = P_i if y_i = k, else -p_ik (0 if not sampled)
    A_i (1 - exp(-u_i)) + u_i = u~_i + P_i      P_i = sum_k p_ik

so that all scores are linear in p through the Gram matrix of the batch. They say that p minimises a
sum of ``p (log(p / (A alpha)) - 1)`` and convex functions, the dual problem: it is strictly convex
also where instances repeat or are empty. Newton's method on log(p), whose system has no eigenvalue
below 1, solves it; conjugate gradients find its directions with one product with the Gram matrix
each. The start is each instance's own update, as if it were alone.

Source: the problem is that of appendix E.4 of [1]_, read with the corrections that docs/softmax.md
lists; the printed solution holds for a diagonal Gram matrix only.

References
----------
.. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577, 2018.
"""

import math

import numpy as np

from sklearn_xc.kernels._jit import inlined, kernel
from sklearn_xc.kernels.implicit_step import normaliser, solve_step
from sklearn_xc.kernels.wright_omega import wright_omega

#: Newton stops when every condition holds to this share of its terms.
_PRECISION = 1e-11
_ROUGH_STEP = 1e-2
_SHORT = 2.0
_NEXT_TO_NOTHING = 1e-30
_MAX_STEPS = 500
_MAX_PRODUCTS = 200
_MAX_HALVINGS = 40
_SUFFICIENT_DECREASE = 1e-4


@inlined
def couple(gram, place, group, c, c_y, p, totals, moves, shift, own_shift):
    """Write how far all scores move: ``shift`` (n, m), and ``own_shift`` (n,) of the targets.

    ``moves`` (n, m) is overwritten with L.
    """
    n, m = p.shape
    for i in range(n):
        totals[i] = 0.0
        for k in range(m):
            totals[i] += p[i, k]
            moves[i, k] = -p[i, k]
        if place[i] >= 0:
            moves[i, place[i]] = totals[i]
    for i in range(n):
        row = shift[i]
        for k in range(m):
            row[k] = 0.0
        outside = 0.0
        for j in range(n):
            g = gram[i, j]
            if g != 0.0:
                other = moves[j]
                for k in range(m):
                    row[k] += g * other[k]
                if group[j] == group[i]:
                    outside += g * totals[j]
        for k in range(m):
            row[k] /= c[k]
        own_shift[i] = row[place[i]] if place[i] >= 0 else outside / c_y[i]


@inlined
def _inner(a, b):
    total = 0.0
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            total += a[i, k] * b[i, k]
    return total


@inlined
def solve_batch(scale, alpha, gram, place, group, q, c, own, c_y, u, p, totals, work):
    """Solve the update; return the largest violation of a condition, as a share of its terms.

    Parameters
    ----------
    scale : ndarray of float64 of shape (n,)
        A of each instance.
    alpha : float
        The inverse probability of a class being sampled.
    gram : ndarray of float64 of shape (n, n)
        Inner products of the instances.
    place : ndarray of int64 of shape (n,)
        Where each instance's target is among the sampled classes, or -1.
    group : ndarray of int64 of shape (n,)
        Equal for instances of the same target.
    q : ndarray of float64 of shape (n, m)
        ``x_i.w~_k / c_k``.
    c : ndarray of float64 of shape (m,)
        Shrinkage of the sampled classes.
    own, c_y : ndarray of float64 of shape (n,)
        Score ``x_i.w~_yi / c_yi`` of the target and its shrinkage.
    u : ndarray of float64 of shape (n,)
        u~; overwritten with the new u.
    p : ndarray of float64 of shape (n, m)
        Overwritten; 0 where a class is the instance's own.
    totals : ndarray of float64 of shape (n,)
        Overwritten with P.
    work : ndarray of float64 of shape (11, n, m)
        Work space.
    """
    n, m = q.shape
    log_p, residual, root, direction, z = work[0], work[1], work[2], work[3], work[4]
    moves, shift, image, old, step = work[5], work[6], work[7], work[8], work[9]
    rest = work[10]
    own_shift, new_u, curvature = np.empty(n), np.empty(n), np.empty(n)
    _start(scale, alpha, gram, place, q, c, own, c_y, u, p, log_p)
    size, slope, best, rounding, worst = 0.0, 0.0, np.inf, 0.0, np.inf
    n_halvings = 0
    for _ in range(_MAX_STEPS):
        # 1. The conditions, and the dual objective, which tells whether the last step was too long.
        couple(gram, place, group, c, c_y, p, totals, moves, shift, own_shift)
        value, slack, worst = 0.0, 0.0, 0.0
        for i in range(n):
            v = normaliser(totals[i], u[i], scale[i])
            new_u[i] = v
            log_scale = math.log(scale[i] * alpha)
            value += totals[i] * (v + own[i] + 0.5 * own_shift[i])
            value -= scale[i] * (v + math.exp(-v)) + 0.5 * (v - u[i]) ** 2
            slack += totals[i] * (v + abs(own[i] + own_shift[i])) + scale[i] * (v + 1.0)
            for k in range(m):
                if k == place[i]:
                    residual[i, k] = 0.0
                    continue
                left = log_p[i, k] - log_scale
                right = q[i, k] + shift[i, k] - own[i] - own_shift[i] - v
                residual[i, k] = left - right
                terms = (
                    1.0 + abs(log_p[i, k]) + abs(log_scale) + abs(q[i, k]) + abs(shift[i, k])
                    + abs(own[i]) + abs(own_shift[i]) + v
                )  # fmt: skip
                violation = abs(residual[i, k]) / terms
                worst = max(worst, violation) if violation == violation else np.inf
                value += p[i, k] * (left - 1.0 - q[i, k] - 0.5 * shift[i, k])
                slack += p[i, k] * terms
        is_short = value <= best + _SUFFICIENT_DECREASE * size * slope + rounding
        if is_short or n_halvings == _MAX_HALVINGS:
            if worst <= _PRECISION:
                break
            # 2. The next direction.
            best, rounding = value, 1e-12 * slack
            size, n_halvings = 1.0, 0
            for i in range(n):
                curvature[i] = 1.0 / (1.0 + scale[i] * math.exp(-new_u[i]))
                for k in range(m):
                    old[i, k] = log_p[i, k]
            slope = _find_direction(
                gram, place, group, c, c_y, p, curvature, residual, root, direction, z, moves,
                shift, image, rest, step, totals, own_shift,
            )  # fmt: skip
        else:
            size *= 0.5
            n_halvings += 1
        # 3. The step.
        _move_logs(gram, c, c_y, curvature, old, step, size, place, log_p, p)
    for i in range(n):
        u[i] = new_u[i]
    return worst


@inlined
def _log_root(right, h):
    """Return the log(p) with ``log(p) + h p = right``."""
    shifted = right + math.log(h)
    if shifted < -30.0:
        return right
    return math.log(wright_omega(shifted)) - math.log(h)


@inlined
def _start(scale, alpha, gram, place, q, c, own, c_y, u, p, log_p):
    """Solve each instance as if it were alone, roughly.

    Where even an explicit step would be short, that step is near enough.
    """
    n, m = q.shape
    factors = np.full(m, alpha)
    q_of, c_of, p_of = np.empty(m), np.empty(m), np.empty(m)
    for i in range(n):
        log_scale = math.log(scale[i] * alpha)
        total = 0.0
        for k in range(m):
            p[i, k], log_p[i, k] = 0.0, -np.inf
            if k != place[i]:
                log_p[i, k] = log_scale + q[i, k] - own[i] - u[i]
                p[i, k] = math.exp(min(log_p[i, k], 1.0))
                total += p[i, k]
        if total * (1.0 + 2.0 * gram[i, i]) < _SHORT:
            continue
        size = 0
        for k in range(m):
            if k != place[i]:
                q_of[size], c_of[size] = q[i, k], c[k]
                size += 1
        v, moved = solve_step(
            scale[i], factors[:size], gram[i, i], own[i], c_y[i], q_of[:size], c_of[:size], u[i],
            p_of[:size], _ROUGH_STEP,
        )  # fmt: skip
        size = 0
        for k in range(m):
            if k != place[i]:
                p[i, k] = p_of[size]
                # Where p underflows, its logarithm follows from the first condition.
                if p[i, k] > 1e-300:
                    log_p[i, k] = math.log(p[i, k])
                else:
                    target = own[i] + moved * gram[i, i] / c_y[i]
                    log_p[i, k] = min(log_scale + q[i, k] - target - v, -690.0)
                size += 1


@inlined
def _move_logs(gram, c, c_y, curvature, old, step, size, place, log_p, p):
    """Move log(p) along a step.

    Far upwards, the step holds for ``log(p) + h p``, h the diagonal of the system: a p that is
    nearly 0 rises by any number of magnitudes at once, and a large one does not overshoot.
    """
    for i in range(old.shape[0]):
        for k in range(old.shape[1]):
            if k == place[i]:
                continue
            change = size * step[i, k]
            if change <= 0.0:
                log_p[i, k] = old[i, k] + change
            elif change < 1.0:
                log_p[i, k] = old[i, k] + math.log1p(change)
            else:
                h = gram[i, i] * (1.0 / c[k] + 1.0 / c_y[i]) + curvature[i]
                right = old[i, k] + change + h * math.exp(old[i, k]) * (1.0 + change)
                log_p[i, k] = _log_root(right, h)
            p[i, k] = math.exp(log_p[i, k])


@inlined
def _multiply(gram, place, group, c, c_y, curvature, z, moves, shift, image, totals, own_shift):
    """Write the derivative of the conditions, less that of log(p), along a change z of p."""
    couple(gram, place, group, c, c_y, z, totals, moves, shift, own_shift)
    for i in range(z.shape[0]):
        common = own_shift[i] + curvature[i] * totals[i]
        for k in range(z.shape[1]):
            image[i, k] = common - shift[i, k]
        if place[i] >= 0:
            image[i, place[i]] = 0.0


@inlined
def _find_direction(
    gram, place, group, c, c_y, p, curvature, residual, root, direction, z, moves, shift,
    image, rest, step, totals, own_shift,
):  # fmt: skip
    """Write Newton's step of log(p) to `step`; return the slope of the objective along it.

    The system is symmetric in ``y = step * sqrt(p)``: ``(1 + sqrt(p) Q sqrt(p)) y = -sqrt(p) r``.
    """
    n, m = p.shape
    for i in range(n):
        for k in range(m):
            root[i, k] = math.sqrt(p[i, k])
            rest[i, k] = -root[i, k] * residual[i, k]
            direction[i, k] = rest[i, k]
            step[i, k] = 0.0
    square = _inner(rest, rest)
    goal = square * min(1e-3, square)
    for product in range(_MAX_PRODUCTS + 1):
        is_last = square <= goal or square <= 1e-300 or product == _MAX_PRODUCTS
        for i in range(n):
            for k in range(m):
                z[i, k] = root[i, k] * (step[i, k] if is_last else direction[i, k])
        _multiply(gram, place, group, c, c_y, curvature, z, moves, shift, image, totals, own_shift)
        if is_last:
            break
        for i in range(n):
            for k in range(m):
                image[i, k] = direction[i, k] + root[i, k] * image[i, k]
        alpha = square / _inner(direction, image)
        for i in range(n):
            for k in range(m):
                step[i, k] += alpha * direction[i, k]
                rest[i, k] -= alpha * image[i, k]
        previous, square = square, _inner(rest, rest)
        for i in range(n):
            for k in range(m):
                direction[i, k] = rest[i, k] + square / previous * direction[i, k]
    # Where p is next to nothing, y says nothing of the step: the conditions themselves do.
    slope = 0.0
    for i in range(n):
        for k in range(m):
            slope += z[i, k] * residual[i, k]
            if p[i, k] > _NEXT_TO_NOTHING:
                step[i, k] /= root[i, k]
            else:
                step[i, k] = -residual[i, k] - image[i, k]
    return slope


@kernel
def solve_one_batch(scale, alpha, gram, place, group, q, c, own, c_y, u, p, totals):
    """Solve one update, as ``solve_batch`` does, with a work space of its own."""
    work = np.empty((11, q.shape[0], q.shape[1]))
    return solve_batch(scale, alpha, gram, place, group, q, c, own, c_y, u, p, totals, work)
