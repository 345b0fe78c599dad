"""How a peer of the step benchmark takes its turns: the commands that step_worker knows.

train VARIANT MODEL BATCH SECONDS   samples a second with BATCH a replica, for about SECONDS
steps VARIANT MODEL BATCH COUNT     seconds that so many steps take; of a task that trains with others
loss train|steps VARIANT MODEL BATCH   the mean loss of the first steps of such a training
empty VARIANT SECONDS               seconds that an empty step takes
parameters MODEL                    how many numbers the model learns
forget                              gives back what the trainings hold
version                             what the peer is
"""

import math
import statistics
import sys
import time
from typing import Callable, NamedTuple

import samples


class Training(NamedTuple):
    """run(count) -> seconds of so many steps; the samples of a step; first_loss() -> the mean loss of the
    first steps (samples.FIRST_STEPS)."""

    run: Callable
    samples: int
    first_loss: Callable = lambda: math.nan


def serve(peer):
    """Answers each command on stdin by one of the peer's methods: training(variant, model, batch), which
    returns a Training, empty(variant), which returns run(count) -> seconds, parameters(model), forget()
    and version()."""
    trainings = {}

    def training(variant, model, batch):
        key = variant, model, batch
        if key not in trainings:
            trainings[key] = peer.training(variant, model, int(batch))
            trainings[key].run(1)  # builds what is built lazily
        return trainings[key]

    for line in sys.stdin:
        command, *words = line.split()
        if command == "train":
            *key, seconds = words
            one = training(*key)
            answer = one.samples / time_steps(one.run, float(seconds))
        elif command == "steps":
            *key, count = words
            answer = training(*key).run(int(count))
        elif command == "loss":
            answer = training(*words[1:]).first_loss()
        elif command == "empty":
            variant, seconds = words
            answer = time_steps(peer.empty(variant), float(seconds))
        elif command == "parameters":
            answer = peer.parameters(*words)
        elif command == "forget":
            trainings.clear()
            peer.forget()
            answer = 0
        else:
            answer = peer.version()
        print(answer, flush=True)


def over(batches, step, samples_of_step):
    """The Training of step(*batch) -> loss over batches that come around."""
    losses = []
    done = 0

    def run(count):
        nonlocal done
        start = time.perf_counter()
        for _ in range(count):
            loss = step(*batches[done % len(batches)])
            done += 1
            if done <= samples.FIRST_STEPS:
                losses.append(loss)
        return time.perf_counter() - start

    return Training(run, samples_of_step, lambda: statistics.mean(losses))


def repeat(step):
    """run(count) -> seconds, of a step."""
    def run(count):
        start = time.perf_counter()
        for _ in range(count):
            step()
        return time.perf_counter() - start

    return run


def time_steps(run, seconds):
    """Seconds that a step takes: of as many as fill `seconds`, one at least, after some that fill a
    tenth of it for warming up."""
    step = run(1)
    for share in (0.1, 1):
        count = int(share * seconds / step)
        if count or share == 1:
            step = run(max(1, count)) / max(1, count)
    return step
