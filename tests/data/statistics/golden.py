#!/usr/bin/env python3
"""Writes golden.json beside it: what SciPy (1.10, Debian's python3-scipy) says of the cases that
tests/analysis/statistics/paired_test.cc compares analysis/statistics/paired.h with.   /usr/bin/python3 golden.py

A rank test with ties has no table: its p is that of all signs (all partitions) of the ranks at
hand, by scipy.stats.permutation_test, which enumerates them. A missing value is null."""
import json
import math
import os
import numpy as np
import scipy
from scipy import optimize, stats

rng = np.random.default_rng(20)


def rounded(values, digits=6):
    return [round(float(v), digits) for v in values]


def signed_rank(name, d):
    x = np.array([v for v in d if v is not None and v != 0])
    if len(x) == 0:
        p, how = 1.0, "none left"
    elif len(x) > 25:
        p = stats.wilcoxon(x, zero_method="wilcox", correction=False, mode="approx").pvalue
        how = "wilcoxon approx"
    elif len(set(abs(x))) == len(x):
        p, how = stats.wilcoxon(x, mode="exact").pvalue, "wilcoxon exact"
    else:
        def positive(signed):
            return np.sum(ranks[signed > 0])
        ranks = stats.rankdata(abs(x))
        p = stats.permutation_test((x,), positive, permutation_type="samples",
                                   vectorized=False, n_resamples=np.inf).pvalue
        how = "permutation_test"
    return {"name": name, "differences": d, "p": float(p), "how": how}


def mann_whitney(name, a, b):
    x, y = (np.array([v for v in s if v is not None]) for s in (a, b))
    if len(x) == 0 or len(y) == 0:
        p, how = 1.0, "a side is empty"
    elif len(x) + len(y) > 50:
        p = stats.mannwhitneyu(x, y, use_continuity=False, method="asymptotic").pvalue
        how = "mannwhitneyu asymptotic"
    elif len(set(x) | set(y)) == len(x) + len(y):
        p, how = stats.mannwhitneyu(x, y, method="exact").pvalue, "mannwhitneyu exact"
    else:
        def rank_sum(first, second):
            return np.sum(stats.rankdata(np.concatenate([first, second]))[:len(first)])
        p = stats.permutation_test((x, y), rank_sum, permutation_type="independent",
                                   vectorized=False, n_resamples=np.inf).pvalue
        how = "permutation_test"
    return {"name": name, "a": a, "b": b, "p": float(p), "how": how}


def tost(name, x, margin):
    x = np.array(x)
    lower = stats.ttest_1samp(x, -margin, alternative="greater").pvalue
    upper = stats.ttest_1samp(x, margin, alternative="less").pvalue
    return {"name": name, "values": list(x), "margin": margin, "p": float(max(lower, upper))}


def power(effect, sd, n, alpha):
    critical = stats.t.ppf(1 - alpha / 2, n - 1)
    shift = effect / sd * math.sqrt(n)
    return stats.nct.sf(critical, n - 1, shift) + stats.nct.cdf(-critical, n - 1, shift)


def powered(name, x, effect, alpha, wanted):
    x = np.array(x)
    sd, n = x.std(ddof=1), len(x)
    found = optimize.brentq(lambda e: power(e, sd, n, alpha) - wanted, sd * 1e-3, sd * 500)
    pairs = 2
    while power(effect, sd, pairs, alpha) < wanted:
        pairs += 1
    return {"name": name, "values": list(x), "effect": effect, "alpha": alpha, "power": wanted,
            "detectable": float(found), "pairs": pairs}


def student(name, x, level):
    x = np.array(x)
    low, high = stats.t.interval(level, len(x) - 1, x.mean(), stats.sem(x))
    return {"name": name, "values": list(x), "level": level, "low": float(low), "high": float(high)}


def bca(name, x, level):
    low, high = stats.bootstrap((np.array(x),), np.mean, confidence_level=level, method="BCa",
                                n_resamples=200000, random_state=1, batch=2000).confidence_interval
    return {"name": name, "values": list(x), "level": level, "low": float(low), "high": float(high)}


normal = lambda n, mean=0.0: rounded(rng.normal(mean, 0.02, n))
golden = {
    "scipy": scipy.__version__,
    "signed_rank": [
        signed_rank("n = 1", [0.3]),
        signed_rank("n = 2", [0.3, 0.1]),
        signed_rank("n = 2, signs differ", [0.3, -0.1]),
        signed_rank("six of one sign", [1, 2, 3, 4, 5, 6]),
        signed_rank("one tie", [1, 1, 2, -3, 4, 5, 6]),
        signed_rank("all tied", [1, 1, 1, 1, 1, -1, 1, 1]),
        signed_rank("tied in two groups", [1, 1, -1, 2, 2, 2, 2, -2, 2]),
        signed_rank("zeros dropped", [0, 0, 1, 2, -3, 4, 5, 6, 7]),
        signed_rank("zeros and ties", [0, 0, 0, 1, 1, 2, -2, 3, 3, 3]),
        signed_rank("all equal: zeros", [0, 0, 0, 0]),
        signed_rank("missing", [None, 1, 2, None, 3, -4, 5]),
        signed_rank("none", []),
        signed_rank("n = 25", normal(25, 0.008)),
        signed_rank("n = 26", normal(26, 0.008)),
        signed_rank("n = 40, ties", rounded(rng.normal(1.2, 4, 44), 0)),
        signed_rank("n = 16, ties", rounded(rng.normal(0.5, 1.5, 16), 0)),
    ],
    "mann_whitney": [
        mann_whitney("n = 1 and 1", [1], [2]),
        mann_whitney("n = 2 and 2", [1, 2], [3, 4]),
        mann_whitney("apart", [1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]),
        mann_whitney("ties", [1, 2, 2, 3, 4], [2, 3, 4, 4, 5]),
        mann_whitney("all equal", [2, 2, 2], [2, 2, 2, 2]),
        mann_whitney("missing", [1, None, 3, 5], [2, 4, None, 6, 7]),
        mann_whitney("a side missing", [None, None], [1, 2]),
        mann_whitney("n = 20 and 25", normal(20), normal(25, 0.01)),
        mann_whitney("n = 40 and 30", normal(40), normal(30, 0.01)),
        mann_whitney("n = 40 and 30, ties", rounded(rng.normal(0, 1.5, 40), 0),
                     rounded(rng.normal(0.6, 1.5, 30), 0)),
    ],
    "tost": [
        tost("n = 2", [0.001, 0.002], 0.05),
        tost("within", normal(12), 0.03),
        tost("at the border", normal(12, 0.03), 0.03),
        tost("beyond", normal(12, 0.06), 0.03),
        tost("n = 30", normal(30, 0.005), 0.02),
    ],
    "power": [
        powered("n = 2", [0.01, -0.02], 0.03, 0.05, 0.8),
        powered("n = 4", normal(4), 0.03, 0.05, 0.8),
        powered("n = 12", normal(12), 0.01, 0.05, 0.8),
        powered("n = 30", normal(30), 0.003, 0.05, 0.9),
        powered("n = 8, strict", normal(8), 0.02, 0.01, 0.95),
    ],
    "student": [
        student("n = 2", [0.01, 0.03], 0.95),
        student("n = 12", normal(12, 0.03), 0.95),
        student("n = 12, 90 %", normal(12, 0.03), 0.9),
    ],
    "bca": [
        bca("n = 8", normal(8, 0.02), 0.95),
        bca("n = 30", normal(30, 0.02), 0.95),
        bca("skewed", rounded(rng.exponential(0.03, 20)), 0.95),
        bca("an outlier", normal(11) + [0.4], 0.9),
        bca("ties", rounded(rng.normal(0, 2, 15), 0), 0.95),
    ],
}

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.json"), "w") as file:
    file.write("{\n")
    for number, (key, value) in enumerate(golden.items()):
        file.write(",\n" if number else "")
        if isinstance(value, list):
            rows = ",\n".join("  " + json.dumps(row) for row in value)
            file.write(f'"{key}": [\n{rows}\n]')
        else:
            file.write(f'"{key}": {json.dumps(value)}')
    file.write("\n}\n")
