"""Rooms, the folders inside a folder of cohort/, form no circle, nor do modules (x.h with x.cc).

A room includes itself and the rooms before it. Tests and what helps them are exempt.
"""

import collections

import tree

# The rooms of a folder, lowest first; "." is what lies flat in the folder. Rooms in one string are of one rank, and
# include each other not at all.
ROOMS = {
    "core": [".", "bytes program", "host", "observe", "threads", "files", "profiler", "cpu", "structure",
             "recording/cuda", "recording"],
    "ops": ["kernels vocabulary", "lookup", ".", "plan sampling"],
    "image": ["codecs kernels", "."],
    "data": ["iteration records", "graph", ". storage", "files functions", "nodes", "sharding"],
    "cluster": ["launch rpc security", "grpc membership same_host", "elastic", ".", "resolvers"],
    "collective": [".", "nccl network shared_memory", "forming"],
    "train": ["bundle summary", "objects safetensors", "saving", "."],
    "distribute": ["tasks values", "core", "input variables", "reduce", "gradients step", "strategies", "preemption"],
    "parameter_server": ["leadership", "store", "cluster", "variables", "closures", "coordinator", "runner", "."],
    "keras": ["base datasets", "losses optimizers", "metrics", "layers/base", "layers/preprocessing",
              "layers/attention layers/convolution layers/images layers/lookup layers/recurrent model",
              "layers training", "saving", "callbacks", "."],
    "transform": ["analysis", "graph", "functions", "passes", "output"],
}

# Circles of modules that would be worse apart, each with its reason.
CIRCLES = {
    ("keras/layers/base/layer", "keras/layers/base/layer_state"): "what a user's layer overrides, and who calls it",
    ("testing/multi_process_runner", "testing/task_process"): "the options of a runner are those of its processes",
}

MOST_SOURCES = 60  # that lie flat in a folder


def is_exempt(path):
    return tree.is_test(path) or path.stem.startswith(("testing_", "test_")) or "simulation" in path.parts


def room_of(folder, directory):
    """The room of a source in `directory`, a path below cohort/: the longest one with a rank."""
    below = str(directory.relative_to(folder))
    ranks = {room: rank for rank, rooms in enumerate(ROOMS[folder]) for room in rooms.split()}
    while below not in ranks and "/" in below:
        below = below.rsplit("/", 1)[0]
    return (below, ranks.get(below))


def circles(graph):
    """The strongly connected parts of more than one node (Tarjan, without recursion)."""
    index, low, stack, found = {}, {}, [], []
    on_stack = set()
    for start in sorted(graph):
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while not part or part[-1] != node:
                        part.append(stack.pop())
                        on_stack.discard(part[-1])
                    if len(part) > 1:
                        found.append(sorted(part))
            elif following not in index:
                index[following] = low[following] = len(index)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(sorted(graph.get(following, ())))))
            elif following in on_stack:
                low[node] = min(low[node], index[following])
    return found


def check(root):
    offences = []
    graph = collections.defaultdict(set)
    flat = collections.Counter()
    for path, text in tree.sources(root / "cohort"):
        if is_exempt(path) or len(path.parts) == 1:
            continue
        module = str(path.with_suffix(""))
        graph[module]
        flat[path.parent] += 1
        own = path.parts[0]
        for line, quoted, name in tree.includes(text):
            used = tree.Path(name).relative_to("cohort") if name.startswith("cohort/") else None
            if not quoted or used is None or not (root / name).is_file():
                continue
            if str(used.with_suffix("")) != module and not is_exempt(used):
                graph[module].add(str(used.with_suffix("")))
            if used.parts[0] != own or used.parent == path.parent:
                continue
            if own not in ROOMS:
                offences.append(f"cohort/{path}:{line}: the rooms of '{own}' have no order in tests/checks/rooms.py")
                continue
            room, rank = room_of(own, path.parent)
            used_room, used_rank = room_of(own, used.parent)
            if rank is None or used_rank is None:
                missing = room if rank is None else used_room
                offences.append(f"cohort/{path}:{line}: room '{own}/{missing}' has no rank in tests/checks/rooms.py")
            elif room != used_room and used_rank >= rank:
                offences.append(f"cohort/{path}:{line}: {own}/{room} may not include {own}/{used_room}, "
                                "which is not below it")
    for part in circles(graph):
        if tuple(part) not in CIRCLES:
            offences.append(f"these modules include each other in a circle: {' '.join(part)}")
    for folder, count in sorted(flat.items()):
        if count > MOST_SOURCES:
            offences.append(f"cohort/{folder}: {count} sources lie flat in it, {MOST_SOURCES} at most: give it rooms")
    return offences


if __name__ == "__main__":
    tree.run(check)
