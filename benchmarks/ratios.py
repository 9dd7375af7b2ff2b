"""What the benchmarks share: processor time, and a ratio with its interval."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

RESAMPLES = 4_000

Step = Callable[[], object]


def seconds(step: Step, times: int) -> float:
    """Processor time of `times` steps, on all threads."""
    start = time.process_time()
    for _ in range(times):
        step()
    return time.process_time() - start


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """The median of ratios, and the ends of its 95 % bootstrap interval."""
    chance = random.Random(0)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    return statistics.median(ratios), medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES)]
