"""The labels with the least sums of table entries, over all labels.

One pass over the codes, for a few queries side by side. A label is kept if its sum is within a
limit, which a sample of the labels sets beforehand so that somewhat more than enough pass. Where
too many do, the best of them are kept and the limit falls; where too few do, there is another pass
with a higher limit. So what is found is exact.
"""

import numpy as np

from sklearn_xc._compile.emitters.byte_lanes import LANES, count_bits, sum_codes, sums_within
from sklearn_xc._compile.emitters.int16_lanes import lowest_bit
from sklearn_xc._compile.jit import inlined, kernel

#: Queries that share a pass over the codes: as many as AVX2 has registers for.
SIDE_BY_SIDE = 5
#: The sample has one group of labels in _SAMPLED, within these bounds.
_SAMPLED = 24
_LEAST_SAMPLE, _LARGEST_SAMPLE = 8, 256
#: By how many standard deviations more labels of the sample should pass than are expected of the
#: best; and one more. About one query in a hundred needs another pass.
_GENEROUS = 2.0
#: Groups of labels that are summed before those within the limit are collected: a few kilobytes.
_STRETCH = 64
#: Bytes of codes that all queries read while they are in the cache of a core.
_CHUNK = 2**18
_N_SUMS = 256
_HIGHEST = 255

_ZERO, _ONE = np.uint64(0), np.uint64(1)

_sum_one, _sum_together = sum_codes(1), sum_codes(SIDE_BY_SIDE)


@inlined
def limit_for(sample, query, n_wanted):
    """Return the least limit that lets `n_wanted` of a query's sums pass; the highest if all."""
    low, high = 0, _HIGHEST
    while low < high:
        middle = (low + high) // 2
        passed = np.uint64(0)
        for s in range(np.uint64(sample.shape[1])):
            passed += count_bits(sums_within(sample, np.uint64(query), s, np.uint8(middle)))
        if np.int64(passed) < n_wanted:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def count_sums(sums, query, n, ends):
    """Write for each sum how many of a query's first n are at most that."""
    for s in range(_N_SUMS):
        ends[s] = 0
    for i in range(n):
        ends[sums[query, i]] += 1
    for s in range(1, _N_SUMS):
        ends[s] += ends[s - 1]


@inlined
def keep_least(labels, sums, query, n, n_kept, ends):
    """Keep the labels of a query's least sums, the first of equals; return the greatest sum."""
    count_sums(sums, query, n, ends)
    greatest = 0
    while ends[greatest] < n_kept:
        greatest += 1
    room = n_kept - (ends[greatest - 1] if greatest > 0 else 0)
    kept = 0
    for i in range(n):
        sum_ = sums[query, i]
        if sum_ < greatest or (sum_ == greatest and room > 0):
            room -= sum_ == greatest
            labels[query, kept], sums[query, kept] = labels[query, i], sum_
            kept += 1
    return greatest


@inlined
def sum_group(codes, group, tables, query, n_together, sums, at):
    """Write the sums of a group, for a query or for SIDE_BY_SIDE of them from this one on."""
    if n_together == 1:
        _sum_one(codes, np.uint64(group), tables, np.uint64(query), sums, np.uint64(at))
    else:
        _sum_together(codes, np.uint64(group), tables, np.uint64(query), sums, np.uint64(at))


@inlined
def collect(sums, k, first, last, n_labels, limit, masks, places, labels, found, m):
    """Append the labels of some groups whose sums are within a limit; return how many there are.

    Few groups have any. They are picked out before, without a branch that the processor would guess
    wrongly.
    """
    n = np.uint64(last - first)
    query = np.uint64(k)
    for g in range(n):
        masks[g] = sums_within(sums, query, g, limit)
    beyond = last * LANES - n_labels
    if beyond > 0:
        masks[n - _ONE] &= np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(beyond)
    n_places = 0
    for g in range(n):
        places[np.uint64(n_places)] = g
        n_places += masks[g] != _ZERO
    at = np.uint64(m)
    for p in range(np.uint64(n_places)):
        place = np.uint64(places[p])
        mask = masks[place]
        first_label = (np.uint64(first) + place) * np.uint64(LANES)
        while mask != _ZERO:
            lane = lowest_bit(mask)
            labels[at] = first_label + lane
            found[at] = sums[query, place, lane]
            mask &= mask - _ONE
            at += _ONE
    return np.int64(at)


@kernel
def search_codes(codes, n_labels, tables, tops, steps, labels_out, scores_out, counts):
    """Write the labels whose table entries have the least sums, for each query.

    Parameters
    ----------
    codes : ndarray of uint8 of shape (n_groups, n_blocks / 2, 64)
        As ``byte_lanes`` reads them.
    n_labels : int
        How many of the lanes are labels; at least one of each group.
    tables : ndarray of uint8 of shape (n, n_blocks, 16)
    tops, steps : ndarray of float64 of shape (n,)
        A score is ``top - step * sum``, where sums stop at 255.
    labels_out : ndarray of int32 of shape (n, n_candidates)
        Overwritten: by ascending sum, then label; -1 at the end if there are fewer labels.
    scores_out : ndarray of float of shape (n, n_candidates)
        Overwritten; -inf at the end.
    counts : ndarray of int64 of shape (n,)
        Overwritten: how many there are, `n_candidates` or `n_labels`.
    """
    n, n_candidates = labels_out.shape
    n_groups = codes.shape[0]
    n_wanted = min(n_candidates, n_labels)
    room = 2 * n_wanted + _STRETCH * LANES
    labels, found = np.empty((n, room), np.int32), np.empty((n, room), np.uint8)
    n_sampled = min(max(n_groups // _SAMPLED, _LEAST_SAMPLE), _LARGEST_SAMPLE, n_groups)
    sample = np.empty((n, n_sampled, LANES), np.uint8)
    limits, generous = np.empty(n, np.uint8), np.empty(n, np.int64)
    sums = np.empty((SIDE_BY_SIDE, _STRETCH, LANES), np.uint8)
    masks, places = np.empty(_STRETCH, np.uint64), np.empty(_STRETCH, np.uint8)
    ends = np.empty(_N_SUMS, np.int64)
    chunk = max(1, _CHUNK // (codes.shape[1] * LANES * _STRETCH)) * _STRETCH

    # 1. Sums of the sample, and limits that let enough of them pass.
    q = 0
    while q < n:
        n_together = SIDE_BY_SIDE if q + SIDE_BY_SIDE <= n else 1
        own = sample[q : q + n_together]
        for s in range(n_sampled):
            group = s * n_groups // n_sampled
            sum_group(codes, group, tables, q, n_together, own, s)
            if group == n_groups - 1:
                own[:, s, n_labels - group * LANES :] = _HIGHEST
        q += n_together
    expected = n_wanted * n_sampled / n_groups
    spare = _GENEROUS * np.sqrt(expected) + 1.0 if n_sampled < n_groups else 0.0
    for q in range(n):
        generous[q] = np.int64(np.ceil(expected + spare))
        limits[q] = limit_for(sample, q, generous[q])
        counts[q] = 0

    first, last, complete = 0, n, 0
    while first < last:
        # 2. A pass for queries `first` to `last`: they read a chunk of the codes one after another.
        for begin in range(0, n_groups, chunk):
            q = first
            while q < last:
                n_together = SIDE_BY_SIDE if q + SIDE_BY_SIDE <= last else 1
                end = min(begin + chunk, n_groups)
                for group in range(begin, end, _STRETCH):
                    until = min(group + _STRETCH, end)
                    for g in range(group, until):
                        sum_group(codes, g, tables, q, n_together, sums, g - group)
                    for k in range(n_together):
                        query = q + k
                        stretch = group, until, n_labels, limits[query], masks, places
                        m = collect(sums, k, *stretch, labels[query], found[query], counts[query])
                        if m > room - _STRETCH * LANES:
                            greatest = keep_least(labels, found, query, m, n_wanted, ends)
                            # Later labels of the greatest sum are not wanted, nor is any, if it is
                            # 0; but then they are no worse, and dropped in the end.
                            limits[query] = max(greatest - 1, 0)
                            m = n_wanted
                        counts[query] = m
                q += n_together
        # 3. Another pass for a query with too few labels, with a limit for twice as many.
        while complete < n and counts[complete] >= n_wanted:
            complete += 1
        first = complete
        last = min(complete + 1, n)
        if first < last:
            generous[first] *= 2
            limits[first] = limit_for(sample, first, generous[first])
            counts[first] = 0

    # 4. Labels by ascending sum, those of equal sums in the order in which they came.
    for q in range(n):
        count_sums(found, q, counts[q], ends)
        for i in range(counts[q] - 1, -1, -1):
            sum_ = found[q, i]
            ends[sum_] -= 1
            place = ends[sum_]
            if place < n_wanted:
                labels_out[q, place] = labels[q, i]
                scores_out[q, place] = tops[q] - steps[q] * sum_
        for place in range(n_wanted, n_candidates):
            labels_out[q, place], scores_out[q, place] = -1, -np.inf
        counts[q] = n_wanted
