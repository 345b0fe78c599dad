"""How a peer of the step benchmark takes its turns: the commands that step_worker knows.

train VARIANT MODEL BATCH SECONDS   samples a second with BATCH a replica, for about SECONDS
empty VARIANT SECONDS               seconds that an empty step takes
parameters MODEL                    how many numbers the model learns
forget                              gives back what the trainings hold
version                             what the peer is
"""

import sys


def serve(peer):
    """Answers each command on stdin by one of the peer's methods: training(variant, model, batch),
    which returns run(count) -> seconds and the samples of a step, empty(variant), which returns
    run(count) -> seconds, parameters(model), forget() and version()."""
    trainings = {}
    for line in sys.stdin:
        command, *words = line.split()
        if command == "train":
            *key, seconds = words
            key = tuple(key)
            if key not in trainings:
                variant, model, batch = key
                run, samples = trainings[key] = peer.training(variant, model, int(batch))
                run(1)  # builds what is built lazily
            run, samples = trainings[key]
            answer = samples / time_steps(run, float(seconds))
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


def time_steps(run, seconds):
    """Seconds that a step takes: of as many as fill `seconds`, one at least, after some that fill a
    tenth of it for warming up."""
    step = run(1)
    for share in (0.1, 1):
        count = int(share * seconds / step)
        if count or share == 1:
            step = run(max(1, count)) / max(1, count)
    return step
