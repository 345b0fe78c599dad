"""The control: how far two cores of this machine really scale at this moment.

Two processes count for a fixed number of rounds, one of them alone and both at once. Two free cores
take as long for both as for one, which is a scale of 2. The same with copying memory tells how much
of it two cores get at; that decides nothing, since two cores may have to share it.
"""

import statistics
import sys
import time

from harness import Worker, refuse

LEAST = 1.8
ROUNDS_OF_WORK = 1_500_000  # about 50 ms
COPIED_BYTES = 64 << 20  # more than caches hold
COPIES = 8


class Control:
    """How far two cores scale, measured again and again during a run."""

    def __init__(self):
        self.workers = [Worker(sys.executable, "-m", "cores") for _ in range(2)]

    def measure(self, work="count", times=5):
        """The scale now, from `times` turns alone and together; work: count or copy."""
        alone, together = [], []
        for _ in range(times):
            alone.append(self.workers[0](work))
            for worker in self.workers:
                worker.start(work)
            together.append(max(float(worker.finish()) for worker in self.workers))
        return scale(alone, together)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for worker in self.workers:
            worker.__exit__(*error)


def scale(alone, together):
    """2 where two cores do twice the work of one in the same time, 1 where they do no more."""
    return 2 * statistics.median(alone) / statistics.median(together)


def while_free(measure_scale, measure, tries=3):
    """What `measure` returns, from a try before and after which two cores scaled far enough, and
    how far they did.

    Ends the program (refuse) where there is none among `tries`.
    """
    scales = [measure_scale()]
    for _ in range(tries):
        result = measure()
        scales.append(measure_scale())
        if min(scales[-2:]) >= LEAST:
            return result, min(scales[-2:])
    refuse(f"two cores do {min(scales):.2f} times the work of one, and {LEAST} is the least: "
           "something else runs on this machine")


def count():
    total = 0
    for number in range(ROUNDS_OF_WORK):
        total += number


def main():
    source, target = bytearray(COPIED_BYTES), bytearray(COPIED_BYTES)
    for command in sys.stdin:
        start = time.perf_counter()
        if command.strip() == "copy":
            for _ in range(COPIES):
                target[:] = source
        else:
            count()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
