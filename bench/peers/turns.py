"""How a peer of the step benchmark takes its turns: the commands that step_worker knows.

train VARIANT MODEL BATCH SECONDS   samples a second with BATCH a replica, for about SECONDS
steps VARIANT MODEL BATCH COUNT     seconds that so many steps take; of a task that trains with others
empty VARIANT SECONDS               seconds that an empty step takes
parameters MODEL                    how many numbers the model learns
forget                              gives back what the trainings hold
version                             what the peer is
"""

import sys
import time


def serve(peer):
    """Answers each command on stdin by one of the peer's methods: training(variant, model, batch),
    which returns run(count) -> seconds and the samples of a step, empty(variant), which returns
    run(count) -> seconds, parameters(model), forget() and version()."""
    trainings = {}

    def training(variant, model, batch):
        key = variant, model, batch
        if key not in trainings:
            trainings[key] = peer.training(variant, model, int(batch))
            trainings[key][0](1)  # builds what is built lazily
        return trainings[key]

    for line in sys.stdin:
        command, *words = line.split()
        if command == "train":
            *key, seconds = words
            run, samples = training(*key)
            answer = samples / time_steps(run, float(seconds))
        elif command == "steps":
            *key, count = words
            run, _ = training(*key)
            answer = run(int(count))
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
