"""No waiting by the clock of the wall, which jumps: deadlines, heartbeats and leases go by the monotonic one.

Row 48 of the fault matrix. What writes a date down for people, or into a file, is named here with its reason.
"""

import re

import tree

WALL = re.compile(r"\b(system_clock::now|gettimeofday|CLOCK_REALTIME)\b|\btime\s*\(\s*(nullptr|NULL|0)\s*\)")

ALLOWED = {
    "cohort/cluster/grpc/grpc_server.cc": "gRPC takes the deadline of its end by this clock, and counts on by its own",
    "cohort/cluster/security/signer.cc": "certificates hold dates",
    "cohort/cluster/status_client.cc": "shown to people",
    "cohort/ops/vocabulary/mapped_vocabulary.cc": "compared with the times of files, which are of this clock",
    "cohort/parameter_server/cluster/ps_cluster.cc": "generations of coordinators, which workers may remember",
    "cohort/parameter_server/coordinator/leader_side.cc": "a number that grows from one coordinator to the next",
    "cohort/train/saving/checkpoint_directory.cc": "TensorFlow's state file holds dates",
    "cohort/train/checkpoint_manager.cc": "keep_checkpoint_every_n_hours goes by the dates in the state file",
    "cohort/train/summary/event_writer.cc": "events hold dates",
}


def check(root):
    offences = []
    for path, text in tree.sources(root / "cohort"):
        where = f"cohort/{path}"
        if where in ALLOWED or where.endswith("_test.cc"):
            continue
        for number, line in enumerate(tree.without_comments(text).splitlines(), start=1):
            match = WALL.search(line)
            if match:
                offences.append(f"{where}:{number}: {match.group(0)} jumps when the clock is set; take steady_clock")
    return offences


if __name__ == "__main__":
    tree.run(check)
