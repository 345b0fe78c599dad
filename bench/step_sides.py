"""The sides of the step benchmark: Cohort, and the candidates for its peers at their best."""

import itertools
import os
import sys

import torch_peer
from harness import KEEP_FREED_MEMORY, Side, Worker, tensorflow_python
from torch_peer import OPENMP_AND_BLAS, blas_label, label

THREADS = (1, 2)


class StepSides:
    """Starts each program when it is first needed, and keeps it until the end."""

    def __init__(self, step_worker, samples, other_worker=None):
        """other_worker: another build's step_worker."""
        self.step_worker = step_worker
        self.other_worker = other_worker
        self.tensorflow_python = tensorflow_python()
        self.samples = samples
        self.workers = {}
        with Worker(step_worker, samples) as worker:
            better = worker.ask("blas_kernels")
        # All sides use the same.
        self.blas_kernels = {} if better == "-" else {"OPENBLAS_CORETYPE": better}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for worker in self.workers.values():
            worker.__exit__(*error)

    def forget(self):
        """Gives back the memory of what was measured so far."""
        for worker in self.workers.values():
            worker.ask("forget")

    def parameters(self, model):
        """{program: how many numbers its model learns}."""
        return {name: worker(f"parameters {model}") for name, worker in self.workers.items()}

    def versions(self):
        return sorted({worker.ask("version") for worker in self.workers.values()})

    def make(self, name, model, batch):
        """A side by its short name: see step.py's comparisons."""
        program, _, kind = name.partition("_")
        if program in torch_peer.PROGRAMS:
            return self._torch(program, torch_peer.KINDS[kind], model, batch)
        return getattr(self, f"_{name}")(model, batch)

    # Cohort's, and the loop of libtorch's own.

    def _cohort(self, *prefix):
        return self._worker(" ".join(["cohort", *prefix]),
                            [*prefix, self.step_worker, self.samples])

    def _cohort2(self, model, batch):
        return Side("Cohort, 2 replicas", [("", self._cohort(), f"train {model} 2 {batch}")])

    def _cohort2_profiled(self, model, batch):
        return Side("Cohort, 2 replicas, with the profiler on",
                    [("", self._cohort(), f"profiled {model} 2 {batch}")])

    def _workers(self, model, batch):
        worker = self._worker("cohort workers", self._two_workers(
            "pinned", [self.step_worker, self.samples]), pauses=False)
        return Side("Cohort, 2 workers", [("", worker, f"train - {model} {batch}")])

    def _hosted(self, replicas, model, batch):
        """The same workers, whose batches that many replicas divide."""
        side = self._workers(model, batch)
        [(name, worker, command)] = side.candidates
        return Side(f"Cohort, 2 workers that host {replicas} replicas",
                    [(name, worker, command.replace(" - ", f" {replicas} "))])

    def _hosted2(self, model, batch):
        return self._hosted(2, model, batch)

    def _hosted8(self, model, batch):
        return self._hosted(8, model, 4 * batch)

    def _cohort8(self, model, batch):
        return Side("Cohort, 8 replicas", [("", self._cohort(), f"train {model} 8 {batch}")])

    @staticmethod
    def _two_workers(kind, command):
        return [sys.executable, "-m", "peers.two_workers", kind, *command]

    def _cohort1(self, model, batch):
        return Side("Cohort, 1 replica", [("", self._cohort(), f"train {model} 1 {batch}")])

    def _cohort_either(self, model, batch):
        """The better one of a replica, and of two with half of the batch each."""
        worker = self._cohort()
        return Side("Cohort", [("1 replica", worker, f"train {model} 1 {batch}"),
                               ("2 replicas", worker, f"train {model} 2 {batch // 2}")])

    def _cohort1_double(self, model, batch):
        return Side(f"Cohort, 1 replica of {2 * batch}",
                    [("", self._cohort(), f"train {model} 1 {2 * batch}")])

    def _cohort2_other(self, model, batch):
        return self._other("Cohort, 2 replicas", f"train {model} 2 {batch}")

    def _cohort1_other(self, model, batch):
        return self._other("Cohort, 1 replica", f"train {model} 1 {batch}")

    def _other(self, title, command):
        worker = self._worker("other cohort", [self.other_worker, self.samples])
        return Side(f"{title}, {worker.ask('version')}", [("", worker, command)])

    def _cohort1_core(self, model, batch):
        core = str(min(os.sched_getaffinity(0)))
        return Side("Cohort, 1 replica on one core",
                    [("", self._cohort("taskset", "--cpu-list", core), f"train {model} 1 {batch}")])

    def _libtorch(self, model, batch):
        return self._libtorch_loop(self.step_worker, model, batch)

    def _libtorch_other(self, model, batch):
        return self._libtorch_loop(self.other_worker, model, batch)

    def _libtorch_loop(self, program, model, batch):
        candidates = [
            (label(threads, *blas_label(threads, blas)),
             self._worker(f"{program} {threads} {blas}", [program, self.samples, threads],
                          torch_peer.environment(threads, blas)), f"libtorch {model} 1 {batch}")
            for threads, blas in OPENMP_AND_BLAS]
        # "Cohort 0.1.0 on libtorch 1.13.1"
        libtorch = candidates[0][1].ask("version").split(" on ")[1]
        return Side(f"loop of {libtorch} alone", candidates)

    def _cohort_empty(self, *_):
        return Side("Cohort, 2 replicas", [("", self._cohort(), "empty run 2 0")], per_second)

    # Peers.

    def _torch(self, program, kind, model, batch):
        module, words = torch_peer.PROGRAMS[program]

        def start(python, threads, blas):
            return self._worker(f"{program} {python} {threads} {blas}",
                                [python, "-m", module, self.samples, threads],
                                torch_peer.environment(threads, blas))

        candidates = torch_peer.candidates(kind, start, model, batch)
        return Side(torch_peer.title(kind, candidates[0][1], words), candidates)

    def _tensorflow(self, model, batch):
        return Side("TensorFlow", self._tensorflow_candidates("plain", model, batch))

    def _mirrored(self, model, batch):
        return Side("TensorFlow MirroredStrategy",
                    self._tensorflow_candidates("mirrored", model, batch))

    def _tensorflow_candidates(self, kind, model, batch):
        unrolled = ["looped", "unrolled"] if model == "lstm" else ["looped"]
        return [(label(threads, *([loop] if model == "lstm" else []), optimizer + " optimizer"),
                 self._tensorflow_worker(kind, threads),
                 f"train {loop},{optimizer} {model} {batch}")
                for threads, loop, optimizer
                in itertools.product(THREADS, unrolled, ["keras", "legacy"])]

    def _tensorflow_worker(self, kind, threads):
        command = [self.tensorflow_python, "-m", "peers.tensorflow_step", self.samples, threads, kind]
        return self._worker(f"tensorflow {kind} {threads}",
                            command if kind != "worker" else self._two_workers("free", command),
                            {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
                            pauses=kind != "worker")

    def _tensorflow_workers(self, model, batch):
        return Side("TensorFlow MultiWorkerMirroredStrategy, 2 processes",
                    self._tensorflow_candidates("worker", model, batch))

    def _tensorflow_empty_eager(self, *_):
        return Side("TensorFlow, eager", self._empty_candidates("eager"), per_second)

    def _tensorflow_empty_function(self, *_):
        return Side("TensorFlow, in tf.function", self._empty_candidates("function"), per_second)

    def _empty_candidates(self, variant):
        return [(label(threads), self._tensorflow_worker("mirrored", threads), f"empty {variant}")
                for threads in THREADS]

    def _worker(self, name, command, environment=None, pauses=True):
        if name not in self.workers:
            self.workers[name] = Worker(*command, pauses=pauses,
                                        environment={**KEEP_FREED_MEMORY, **self.blas_kernels,
                                                     **(environment or {})})
            self.workers[name].ask("version")  # it has started
        return self.workers[name]


def per_second(seconds):
    return 1 / seconds
