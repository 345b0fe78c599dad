"""Two workers that train in step take their turn of bench/step.py together.

Usage: python3 -m peers.two_workers pinned|free COMMAND..., with commands as in turns.py. COMMAND runs
once for each worker (pinned: on a core of its own) and knows turns.py's "steps".
"""

import subprocess
import sys

from peers import cluster, turns

WORKERS = 2


class Peer:
    def __init__(self, pinned, command):
        self.workers = list(cluster.start({"worker": WORKERS}, command, pinned,
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE).values())

    def ask(self, command):
        """The answers of the workers, which carry the command out at the same time."""
        for worker in self.workers:
            print(command, file=worker.stdin, flush=True)
        return [worker.stdout.readline().strip() for worker in self.workers]

    def training(self, variant, model, batch):
        def run(count):
            return max(map(float, self.ask(f"steps {variant} {model} {batch} {count}")))

        def first_loss():
            return float(self.ask(f"loss steps {variant} {model} {batch}")[0])

        return turns.Training(run, WORKERS * batch, first_loss)

    def parameters(self, model):
        return float(self.ask(f"parameters {model}")[0])

    def forget(self):
        self.ask("forget")

    def version(self):
        return self.ask("version")[0]

    def end(self):
        for worker in self.workers:
            worker.stdin.close()
        cluster.end(self.workers)


def main():
    kind, *command = sys.argv[1:]
    peer = Peer(kind == "pinned", command)
    turns.serve(peer)
    peer.end()


if __name__ == "__main__":
    main()
