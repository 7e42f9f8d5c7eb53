"""The implicit update of a mini-batch: several instances that share their sampled classes.

With the notation of ``implicit_step``, instances i and sampled classes k (those of the batch, less
the instance's own), the optimality conditions are::

    log p_ik = log(A_i alpha_k) + x_i.(w_k - w_yi) - u_i
    w_k = (w~_k + sum_i L_ik x_i) / c_k         L_ik = P_i if y_i = k, else -p_ik (0 if not sampled)
    A_i (1 - exp(-u_i)) + u_i = u~_i + P_i      P_i = sum_k p_ik

with the intercepts of ``implicit_step``, which add their rate to the Gram matrix of the batch. So
all scores are linear in p through that matrix. They say that p minimises a sum of ``p (log(p / (A
alpha)) - 1)`` and convex functions, the dual problem: it is strictly convex also where instances
repeat or are empty. Newton's method on log(p), whose system has no eigenvalue below 1, solves it;
conjugate gradients find its directions with one product with the Gram matrix each. Their
preconditioner, and the start, is each instance's own problem, as if it were alone: a diagonal and a
matrix of rank 1.

Source: the problem is that of appendix E.4 of [1]_, read with the corrections that docs/softmax.md
lists; the printed solution holds for a diagonal Gram matrix only.

References
----------
.. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577, 2018.
"""

import math
from typing import NamedTuple

import numpy as np

from sklearn_xc._compile.arithmetic.vector_math import vector_exp, vector_expm1, vector_log
from sklearn_xc._compile.jit import inlined, scratch
from sklearn_xc.softmax.kernels.implicit_step import refine_normaliser, rough_wright_omega

#: Arrays of the shape of p that ``solve_batch`` works in.
N_WORK = 11
#: Default of `precision` in ``solve_batch``, near the rounding of float64.
PRECISION = 1e-11
#: The start of an instance stops at steps below this.
_ROUGH_STEP = 0.1
#: An instance starts at its explicit step where ``P (1 + 2 |x|^2)`` is below this.
_SHORT = 2.0
#: Below this p, the conditions give the step of log(p), not the conjugate gradients.
_LITTLE = 1e-3
#: Squared norm of instances without features, in the start.
_SMALLEST_NORM = 1e-8
#: log(p) of the instance's own class in the start.
_NEVER = -1e5
#: Largest argument of the Wright omega function.
_LARGEST = 1e10
_MAX_STEPS = 500
_MAX_PRODUCTS = 200
_MAX_HALVINGS = 40
_MAX_ROUNDS = 200
_SUFFICIENT_DECREASE = 1e-4


class ScoreStep(NamedTuple):
    """The step of a mini-batch, in scores.

    Attributes
    ----------
    scale : ndarray of float64 of shape (n,)
        A of each instance.
    alpha : ndarray of float64 of shape (m,)
        The inverse probability of each class being sampled.
    gram : ndarray of float64 of shape (n, n)
        Inner products of the instances, and the rate of intercepts.
    place : ndarray of int64 of shape (n,)
        Where each instance's target is among the sampled classes, or -1.
    group : ndarray of int64 of shape (n,)
        Equal for instances of the same target.
    q : ndarray of float64 of shape (n, m)
        ``x_i.w~_k / c_k + b~_k``.
    c : ndarray of float64 of shape (m,)
        Shrinkage of the sampled classes.
    own, c_y : ndarray of float64 of shape (n,)
        Score ``x_i.w~_yi / c_yi + b~_yi`` of the target and its shrinkage.
    u : ndarray of float64 of shape (n,)
        u~.
    """

    scale: np.ndarray
    alpha: np.ndarray
    gram: np.ndarray
    place: np.ndarray
    group: np.ndarray
    q: np.ndarray
    c: np.ndarray
    own: np.ndarray
    c_y: np.ndarray
    u: np.ndarray


@inlined
def implicit_batch_step(work, q, p, precision):
    """Take the step in scores of a batch: write `p`, and the totals and u of `work`.

    Parameters
    ----------
    work : BatchWork
        The batch, prepared and scored.
    q, p : ndarray of float64 of shape (n, m)
        Scores after the shrinkage; moves, overwritten.
    precision : float
        See ``solve_batch``.
    """
    size, m = q.shape
    step = ScoreStep(
        work.scale[:size],
        work.alpha[:m],
        work.gram[: size * size].reshape((size, size)),
        work.place[:size],
        work.group[:size],
        q,
        work.c[:m],
        work.own[:size],
        work.c_y[:size],
        work.u[:size],
    )
    solver = work.solver[: N_WORK * size * m].reshape((N_WORK, size, m))
    solve_batch(step, p, work.totals[:size], solver, precision)


@inlined
def multiply_gram(gram, moves, shift):
    """Write ``gram @ moves`` to `shift`.

    Four rows times four at once: the sums are kept in memory and are read a quarter as often, and
    so are the moves.
    """
    n, m = moves.shape
    whole = n - n % 4
    for i in range(n):
        row = shift[i]
        for k in range(m):
            row[k] = 0.0
    for i in range(0, whole, 4):
        e, f, g, h = gram[i], gram[i + 1], gram[i + 2], gram[i + 3]
        s, t, v, w = shift[i], shift[i + 1], shift[i + 2], shift[i + 3]
        for j in range(0, whole, 4):
            s0, s1, s2, s3 = e[j], e[j + 1], e[j + 2], e[j + 3]
            t0, t1, t2, t3 = f[j], f[j + 1], f[j + 2], f[j + 3]
            v0, v1, v2, v3 = g[j], g[j + 1], g[j + 2], g[j + 3]
            w0, w1, w2, w3 = h[j], h[j + 1], h[j + 2], h[j + 3]
            above = s0 == s1 == s2 == s3 == t0 == t1 == t2 == t3 == 0.0
            if above and v0 == v1 == v2 == v3 == w0 == w1 == w2 == w3 == 0.0:
                continue
            r0, r1, r2, r3 = moves[j], moves[j + 1], moves[j + 2], moves[j + 3]
            for k in range(m):
                x0, x1, x2, x3 = r0[k], r1[k], r2[k], r3[k]
                s[k] += s0 * x0 + s1 * x1 + s2 * x2 + s3 * x3
                t[k] += t0 * x0 + t1 * x1 + t2 * x2 + t3 * x3
                v[k] += v0 * x0 + v1 * x1 + v2 * x2 + v3 * x3
                w[k] += w0 * x0 + w1 * x1 + w2 * x2 + w3 * x3
    for i in range(n):
        row = shift[i]
        for j in range(whole if i < whole else 0, n):
            factor, other = gram[i, j], moves[j]
            for k in range(m):
                row[k] += factor * other[k]


@inlined
def couple(step, over_c, totals, moves, shift, own_shift):
    """Write how far all scores move: ``shift`` (n, m), and ``own_shift`` (n,) of the targets.

    ``moves`` (n, m) is -p, and is overwritten with L.
    """
    n, m = moves.shape
    gram, place, group = step.gram, step.place, step.group
    for i in range(n):
        if place[i] >= 0:
            moves[i, place[i]] = totals[i]
    multiply_gram(gram, moves, shift)
    for i in range(n):
        for k in range(m):
            shift[i, k] *= over_c[k]
        if place[i] >= 0:
            own_shift[i] = shift[i, place[i]]
        else:
            outside = 0.0
            row = gram[i]
            for j in range(n):
                outside += row[j] * totals[j] if group[j] == group[i] else 0.0
            own_shift[i] = outside / step.c_y[i]


@inlined
def solve_batch(step, p, totals, work, precision):
    """Solve the update; return the largest violation of a condition, as a share of its terms.

    Parameters
    ----------
    step : ScoreStep
        Its u is overwritten with the new one.
    p : ndarray of float64 of shape (n, m)
        Overwritten; 0 where a class is the instance's own.
    totals : ndarray of float64 of shape (n,)
        Overwritten with P.
    work : ndarray of float64 of shape (N_WORK, n, m)
        Work space.
    precision : float
        Newton's method stops when every condition holds to this share of its terms.
    """
    n, m = p.shape
    log_p, old, direction = work[0], work[2], work[3]
    per_class, per_row = scratch(3 * m, np.float64), scratch(4 * n, np.float64)
    over_c, log_alpha, largest = per_class[:m], per_class[m : 2 * m], per_class[2 * m :]
    own_shift, new_u = per_row[:n], per_row[n : 2 * n]
    curvature, log_scale = per_row[2 * n : 3 * n], per_row[3 * n :]
    for k in range(m):
        over_c[k] = 1.0 / step.c[k]
        log_alpha[k] = math.log(step.alpha[k])
    for i in range(n):
        log_scale[i], new_u[i] = math.log(step.scale[i]), step.u[i]
    _start(step, log_scale, log_alpha, new_u, p, log_p, largest)
    size, slope, best, rounding, worst = 0.0, 0.0, np.inf, 0.0, np.inf
    n_halvings = 0
    for _ in range(_MAX_STEPS):
        # 1. The conditions, and the dual objective, which shows if the last step was too long.
        mass = _move_scores(step, over_c, p, totals, work, own_shift, new_u, curvature)
        value, slack, worst = _check_conditions(
            step, log_scale, log_alpha, own_shift, new_u, p, totals, work, largest
        )
        is_short = value <= best + _SUFFICIENT_DECREASE * size * slope + rounding
        if is_short or n_halvings == _MAX_HALVINGS:
            if worst <= precision:
                break
            # 2. The next direction.
            best = value
            rounding = 1e-12 * slack
            size = 1.0
            n_halvings = 0
            for i in range(n):
                for k in range(m):
                    old[i, k] = log_p[i, k]
            floor = 0.1 * precision * precision * mass
            slope = _find_direction(step, over_c, p, curvature, work, totals, own_shift, floor)
        else:
            size *= 0.5
            n_halvings += 1
        # 3. The step.
        _move_logs(step, curvature, old, direction, size, log_p, p)
    for i in range(n):
        step.u[i] = new_u[i]
    return worst


@inlined
def _move_scores(step, over_c, p, totals, work, own_shift, new_u, curvature):
    """Write totals, u and how far scores move for the current p; return the sum of all p."""
    n, m = p.shape
    moves = work[4]
    shift = work[5]
    mass = 0.0
    for i in range(n):
        total = 0.0
        for k in range(m):
            moves[i, k] = -p[i, k]
            total += p[i, k]
        totals[i] = total
        mass += total
    couple(step, over_c, totals, moves, shift, own_shift)
    _find_normalisers(step.scale, step.u, totals, new_u)
    for i in range(n):
        curvature[i] = 1.0 / (1.0 + step.scale[i] * vector_exp(-new_u[i]))
    return mass


@inlined
def _check_conditions(step, log_scale, log_alpha, own_shift, new_u, p, totals, work, largest):
    """Write the residuals; return the dual objective, its terms, and the largest violation."""
    n, m = p.shape
    log_p, residual, shift = work[0], work[1], work[5]
    value, slack, all_violations = 0.0, 0.0, 0.0
    for k in range(m):
        largest[k] = 0.0
    for i in range(n):
        v, own, place, scale = new_u[i], step.own[i], step.place[i], step.scale[i]
        value += totals[i] * (v + own + 0.5 * own_shift[i])
        value -= scale * (v + vector_exp(-v)) + 0.5 * (v - step.u[i]) * (v - step.u[i])
        slack += totals[i] * (v + abs(own + own_shift[i])) + scale * (v + 1.0)
        factor = log_scale[i]
        target = own + own_shift[i] + v
        for k in range(m):
            residual[i, k] = (log_p[i, k] - (factor + log_alpha[k])) - (
                step.q[i, k] + shift[i, k] - target
            )
        if place >= 0:
            residual[i, place] = 0.0
        others = 1.0 + abs(own) + abs(own_shift[i]) + v
        for k in range(m):
            log_factor = factor + log_alpha[k]
            score = step.q[i, k]
            terms = others + abs(log_p[i, k]) + abs(log_factor) + abs(score) + abs(shift[i, k])
            violation = abs(residual[i, k]) / terms
            all_violations += violation
            largest[k] = max(largest[k], violation)
            value += p[i, k] * (log_p[i, k] - log_factor - 1.0 - score - 0.5 * shift[i, k])
            slack += p[i, k] * terms
    worst = 0.0
    for k in range(m):
        worst = max(worst, largest[k])
    return value, slack, worst if all_violations < np.inf else np.inf  # not for NaN either


@inlined
def _find_normalisers(scale, u, totals, new_u):
    """Write the root of ``scale (1 - exp(-v)) + v = u + totals`` of each instance to `new_u`.

    The left side is concave in v: Newton's method climbs to the root, at the latest from its second
    step on, from wherever `new_u` is.
    """
    for _ in range(100):
        n_moving = 0.0
        for i in range(u.shape[0]):
            v = new_u[i]
            decay = vector_expm1(-v)
            change = (scale[i] * decay - v + (u[i] + totals[i])) / (1.0 + scale[i] * (1.0 + decay))
            new_v = max(v + change, 0.0)
            n_moving += 0.0 if abs(change) <= 1e-9 * new_v else 1.0
            new_u[i] = new_v
        if n_moving == 0.0:
            break


@inlined
def _start(step, log_scale, log_alpha, new_u, p, log_p, z):
    """Solve each instance as if it were alone, roughly: see ``implicit_step``.

    Where even an explicit step would be short, that step is near enough.
    """
    n, m = p.shape
    scale, _, gram, place, _, q, c, own, c_y, u = step
    for i in range(n):
        factor = log_scale[i] - own[i] - u[i]
        for k in range(m):
            log_p[i, k] = factor + log_alpha[k] + q[i, k]
        if place[i] >= 0:
            log_p[i, place[i]] = _NEVER
        total = 0.0
        for k in range(m):
            p[i, k] = vector_exp(min(log_p[i, k], 1.0))
            total += p[i, k]
        if total * (1.0 + 2.0 * gram[i, i]) >= _SHORT:
            norm = max(gram[i, i], _SMALLEST_NORM)
            risen = 0.0  # of the unknown v, from u + own
            gain = norm / c_y[i]
            v = new_u[i]
            for k in range(m):
                z[k] = log_p[i, k] + vector_log(norm / c[k])
            for _ in range(_MAX_ROUNDS):
                total, slope = 0.0, 0.0
                for k in range(m):
                    per = c[k] / norm
                    w = rough_wright_omega(z[k] - risen)
                    p[i, k] = w
                    total += per * w
                    slope += per * (w / (1.0 + w))
                v = refine_normaliser(v, u[i] + total, scale[i])
                slope_u = 1.0 / (1.0 + scale[i] * math.exp(-v))
                change = v - u[i] + total * gain - risen
                change /= 1.0 + slope * (slope_u + gain)
                risen += change
                if abs(change) <= _ROUGH_STEP:
                    break
            new_u[i] = v
            for k in range(m):  # log(w) = z - w, and the last step by the derivative
                w = p[i, k]
                log_p[i, k] -= (risen - change) + w + change / (1.0 + w)
        for k in range(m):
            p[i, k] = vector_exp(log_p[i, k])
        if place[i] >= 0:
            log_p[i, place[i]], p[i, place[i]] = 0.0, 0.0


@inlined
def _move_logs(step, curvature, old, direction, size, log_p, p):
    """Move log(p) along a step.

    Far upwards, the step holds for ``log(p) + h p``, h the diagonal of the system: a p that is
    nearly 0 rises by any number of magnitudes at once, and a large one does not overshoot. Less far
    it holds for p, up to the third digit of ``log(1 + change)``.
    """
    n, m = old.shape
    for i in range(n):
        n_far = 0.0
        for k in range(m):
            change = size * direction[i, k]
            up = max(change, 0.0)
            n_far += 1.0 if change >= 1.0 else 0.0
            log_p[i, k] = old[i, k] + min(change, 0.0) + up * (6.0 + up) / (6.0 + 4.0 * up)
        if n_far > 0.0:
            for k in range(m):
                change = size * direction[i, k]
                h = step.gram[i, i] * (1.0 / step.c[k] + 1.0 / step.c_y[i]) + curvature[i]
                log_h = vector_log(h)
                right = old[i, k] + change + h * vector_exp(old[i, k]) * (1.0 + change)
                z = min(right + log_h, _LARGEST)
                far = z - rough_wright_omega(z) - log_h
                log_p[i, k] = far if change >= 1.0 else log_p[i, k]
        for k in range(m):
            p[i, k] = vector_exp(log_p[i, k])
        if step.place[i] >= 0:
            log_p[i, step.place[i]], p[i, step.place[i]] = 0.0, 0.0


@inlined
def _find_direction(step, over_c, p, curvature, work, totals, own_shift, floor):
    """Write Newton's step of log(p) to ``work[3]``; return the slope of the objective along it.

    The system is symmetric in ``y = step * sqrt(p)``: ``(1 + sqrt(p) Q sqrt(p)) y = -sqrt(p) r``.
    Conjugate gradients stop at a squared residual, in the norm of the inverse preconditioner, that
    is a small share of the first or `floor`.
    """
    n, m = p.shape
    found, moves, shift = work[3], work[4], work[5]
    root, direction, rest, inverse, along = work[6], work[7], work[8], work[9], work[10]
    gain, common = scratch(n, np.float64), scratch(n, np.float64)
    _precondition(step, over_c, p, curvature, work, gain, common)
    square, previous, goal, speed = 0.0, 1.0, 0.0, 0.0
    for product in range(_MAX_PRODUCTS + 1):
        # 1. The rest, less what the last product explains, and the next direction.
        previous, square = square, 0.0
        for i in range(n):
            projected = 0.0
            both = common[i]
            for k in range(m):
                rest[i, k] -= speed * (direction[i, k] + root[i, k] * (both - shift[i, k]))
                projected += root[i, k] * inverse[i, k] * rest[i, k]
            projected *= gain[i]
            for k in range(m):
                z = inverse[i, k] * (rest[i, k] - root[i, k] * projected)
                square += z * rest[i, k]
                moves[i, k] = z
        if product == 0:
            goal = square * max(min(1e-2, square), min(floor / (square + 1e-300), 0.1))
        if square <= goal or square <= 1e-300 or product == _MAX_PRODUCTS:
            break
        ratio = square / previous if product else 0.0
        for i in range(n):
            total = 0.0
            for k in range(m):
                d = moves[i, k] + ratio * direction[i, k]
                direction[i, k] = d
                moves[i, k] = -(root[i, k] * d)
                total -= moves[i, k]
            totals[i] = total
        # 2. The product, and how far to go.
        couple(step, over_c, totals, moves, shift, own_shift)
        length = 0.0
        for i in range(n):
            both = common[i] = own_shift[i] + curvature[i] * totals[i]
            for k in range(m):
                d = direction[i, k]
                length += d * (d + root[i, k] * (both - shift[i, k]))
        speed = square / length
        for i in range(n):
            both = common[i]
            for k in range(m):
                found[i, k] += speed * direction[i, k]
                along[i, k] += speed * (both - shift[i, k])
    return _step_of_logs(step.place, p, work)


@inlined
def _precondition(step, over_c, p, curvature, work, gain, common):
    """Set the variables of conjugate gradients: each instance's own problem, as if alone."""
    residual, found, root, direction = work[1], work[3], work[6], work[7]
    rest, inverse, along = work[8], work[9], work[10]
    n, m = p.shape
    for i in range(n):
        norm = step.gram[i, i]
        share = 0.0
        for k in range(m):
            root[i, k] = np.sqrt(p[i, k])
            inverse[i, k] = 1.0 / (1.0 + p[i, k] * (norm * over_c[k]))
            share += p[i, k] * inverse[i, k]
        for k in range(m):
            rest[i, k] = -root[i, k] * residual[i, k]
            found[i, k] = along[i, k] = direction[i, k] = 0.0
        both = norm / step.c_y[i] + curvature[i]
        gain[i], common[i] = both / (1.0 + both * share), 0.0


@inlined
def _step_of_logs(place, p, work):
    """Turn y into the step of log(p), and return the slope of the objective along it.

    Where p is small, y says little of the step: the conditions themselves do.
    """
    residual, found, root, along = work[1], work[3], work[6], work[10]
    n, m = p.shape
    slope = 0.0
    for i in range(n):
        for k in range(m):
            slope += found[i, k] * root[i, k] * residual[i, k]
        for k in range(m):
            by_root = found[i, k] / max(root[i, k], 1e-160)
            found[i, k] = by_root if p[i, k] > _LITTLE else -residual[i, k] - along[i, k]
        if place[i] >= 0:
            found[i, place[i]] = 0.0
    return slope
