"""Runs the tasks of a manifest as their pods would: each in a network, a file system and a host name of its
own, with the environment, mounts and user that the manifest gives it, and restarts as its policies say.

    python3 pods.py PLAN.json        as root; prints a line of JSON

The plan is plan_of()'s. What it makes lies in namespaces that end with it. No container runtime is needed:
the image is the folder `image` of the plan, which comes first in PATH, over this host's own files.
"""

import json
import os
import pathlib
import re
import select
import subprocess
import sys
import time

NETWORK = "10.78.0."
SEEN_IN_IMAGE = ["bin", "sbin", "usr", "lib", "lib32", "lib64", "libx32", "opt", "dev", "proc"]


def only(found):
    assert len(found) == 1, found
    return found[0]


def of_kind(documents, kind):
    return [document for document in documents if document["kind"] == kind]


def find_job(documents):
    """Spec of the one Job, the prefix of its pods' names, the service they are in, and how often all may
    start again together (None: each pod by itself)."""
    jobs = of_kind(documents, "Job")
    if jobs:
        job = only(jobs)
        service = only(of_kind(documents, "Service"))
        template = job["spec"]["template"]
        assert service["metadata"]["name"] == template["spec"]["subdomain"]
        assert service["spec"]["clusterIP"] == "None"
        assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
        return job["spec"], job["metadata"]["name"], template["spec"]["subdomain"], None
    train_job = only(of_kind(documents, "TrainJob"))
    runtime = only(of_kind(documents, "TrainingRuntime"))
    reference = train_job["spec"]["runtimeRef"]
    assert (reference["kind"], reference["name"]) == (runtime["kind"], runtime["metadata"]["name"])
    job_set = runtime["spec"]["template"]["spec"]
    replicated = only(job_set["replicatedJobs"])
    name = train_job["metadata"]["name"]
    nodes = train_job["spec"]["trainer"]["numNodes"]
    spec = {**replicated["template"]["spec"], "completions": nodes, "parallelism": nodes}
    return spec, f"{name}-{replicated['name']}-0", name, job_set["failurePolicy"]["maxRestarts"]


def expand(text, environment):
    """$(NAME) as kubelet does it: by what stands before it, else it stays."""
    return re.sub(r"\$\(([A-Za-z_]\w*)\)", lambda found: environment.get(found[1], found[0]), text)


def environment_of(container, index, fields):
    found = {}
    for entry in container.get("env", []):
        if "valueFrom" in entry:
            found[entry["name"]] = fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
        else:
            found[entry["name"]] = expand(entry["value"], found)
    return {**found, "JOB_COMPLETION_INDEX": str(index)}  # which the Job's controller puts last


def files_of(volume):
    """(secret, key, path in the volume, mode) of each file; None: a claim."""
    if "persistentVolumeClaim" in volume:
        return None
    projected = volume["projected"]
    return [(source["secret"]["name"], item["key"], item["path"], projected["defaultMode"])
            for source in projected["sources"] for item in source["secret"]["items"]]


def pod_of(spec, prefix, subdomain, index):
    pod = spec["template"]["spec"]
    container = only(pod["containers"])
    name = f"{prefix}-{index}"
    fields = {"metadata.annotations['batch.kubernetes.io/job-completion-index']": str(index),
              "metadata.name": f"{name}-x7k2p", "metadata.namespace": "default"}
    environment = environment_of(container, index, fields)
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = []
    for mount in container["volumeMounts"]:
        sub_path = expand(mount.get("subPathExpr", ""), environment)
        assert "$(" not in sub_path, sub_path
        mounts.append({"at": mount["mountPath"], "sub_path": sub_path,
                       "read_only": mount.get("readOnly", False),
                       "volume": mount["name"], "files": files_of(volumes[mount["name"]])})
    security = pod["securityContext"]
    return {"name": name, "address": f"{name}.{subdomain}", "container": container["name"],
            "command": [expand(word, environment) for word in container["command"]],
            "environment": environment, "mounts": mounts, "user": security["runAsUser"],
            "group": security["runAsGroup"], "files_group": security["fsGroup"]}


def plan_of(documents, image, secrets):
    """What this program runs. `image`: a folder with the program; `secrets`: one with a folder for each."""
    spec, prefix, subdomain, restarts_of_all = find_job(documents)
    assert spec["completionMode"] == "Indexed" and spec["parallelism"] == spec["completions"]
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    return {"pods": [pod_of(spec, prefix, subdomain, i) for i in range(spec["completions"])],
            "image": str(image), "secrets": str(secrets), "restarts_of_all": restarts_of_all,
            "backoff_limit": spec["backoffLimit"], "rules": spec["podFailurePolicy"]["rules"]}


def run(*command):
    subprocess.run(command, check=True)


class Network:
    """A bridge, to which each pod's namespace is joined."""

    def __init__(self, count):
        pathlib.Path("/run/netns").mkdir(exist_ok=True)
        run("mount", "-t", "tmpfs", "none", "/run/netns")
        run("ip", "link", "add", "bridge", "type", "bridge")
        run("ip", "link", "set", "bridge", "up")
        for i in range(count):
            run("ip", "netns", "add", f"pod{i}")
            run("ip", "link", "add", f"port{i}", "type", "veth", "peer", "name", "eth0", "netns",
                f"pod{i}")
            run("ip", "link", "set", f"port{i}", "master", "bridge", "up")
            run("ip", "-n", f"pod{i}", "address", "add", f"{NETWORK}{i + 1}/24", "dev", "eth0")
            run("ip", "-n", f"pod{i}", "link", "set", "eth0", "up")
            run("ip", "-n", f"pod{i}", "link", "set", "lo", "up")


class Root:
    """The file system of a pod: this host's programs and libraries, and what the manifest mounts."""

    def __init__(self, plan, index, folder):
        self.path = folder / f"root{index}"
        self.path.mkdir()
        run("mount", "-t", "tmpfs", "none", str(self.path))
        for name in SEEN_IN_IMAGE:
            host = pathlib.Path("/") / name
            if host.is_symlink():
                (self.path / name).symlink_to(os.readlink(host))
            elif host.exists():
                self._bind(host, f"/{name}", recursive=True)
        run("cp", "-a", "/etc", str(self.path / "etc"))
        (self.path / "tmp").mkdir()
        (self.path / "tmp").chmod(0o1777)
        self._bind(plan["image"], "/image")
        hosts = "127.0.0.1 localhost\n" + "".join(
            f"{NETWORK}{i + 1} {pod['address']}\n" for i, pod in enumerate(plan["pods"]))
        (self.path / "etc/hosts").write_text(hosts)
        self.seen = {}
        pod = plan["pods"][index]
        for mount in pod["mounts"]:
            self._mount(mount, pod["files_group"], folder / f"volumes{index}", plan, folder)

    def _bind(self, source, at, recursive=False, read_only=False):
        target = self.path / at.lstrip("/")
        target.mkdir(parents=True, exist_ok=True)
        run("mount", "--rbind" if recursive else "--bind", str(source), str(target))
        if read_only:
            run("mount", "-o", "remount,bind,ro", str(target))

    def _mount(self, mount, group, volumes, plan, folder):
        if mount["files"] is None:
            source = folder / "claims" / mount["volume"]
            source.mkdir(parents=True, exist_ok=True)
            os.chown(source, 0, group)
            source.chmod(0o2770)
        else:
            source = volumes / mount["volume"]
            for secret, key, path, mode in mount["files"]:
                file = source / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes((pathlib.Path(plan["secrets"]) / secret / key).read_bytes())
                os.chown(file, 0, group)
                file.chmod(mode)
            source = source / mount["sub_path"]
            self.seen[mount["at"]] = sorted(
                str(file.relative_to(source)) for file in source.rglob("*") if file.is_file())
        self._bind(source, mount["at"], read_only=mount["read_only"])


class Pods:
    def __init__(self, plan, folder):
        self.plan = plan
        self.folder = folder
        self.network = Network(len(plan["pods"]))
        self.roots = [Root(plan, i, folder) for i in range(len(plan["pods"]))]
        self.running = {}
        self.codes = {}
        self.failures = 0
        self.restarts = 0

    def log(self, index):
        return self.folder / f"log{index}"

    def start(self, index):
        pod = self.plan["pods"][index]
        environment = {"PATH": "/image:/usr/local/bin:/usr/bin:/bin", "HOME": "/", "HOSTNAME": pod["name"],
                       **pod["environment"]}
        script = f"hostname {pod['name']}; exec chroot {self.roots[index].path} \"$@\""
        with open(self.log(index), "a") as log:
            self.running[index] = subprocess.Popen(
                ["ip", "netns", "exec", f"pod{index}", "unshare", "--uts", "sh", "-c", script, "sh",
                 "setpriv", f"--reuid={pod['user']}", f"--regid={pod['group']}",
                 f"--groups={pod['files_group']}", "--no-new-privs", "env", "-i",
                 *[f"{name}={value}" for name, value in environment.items()], *pod["command"]],
                stdout=log, stderr=subprocess.STDOUT)

    def action(self, code):
        for rule in self.plan["rules"]:
            if "onExitCodes" not in rule:
                continue
            values = rule["onExitCodes"]["values"]
            if (code in values) == (rule["onExitCodes"]["operator"] == "In"):
                return rule["action"]
        return "Count"

    def ended(self, index, code):
        """Returns whether the Job goes on."""
        self.codes.setdefault(index, []).append(code)
        if code == 0:
            return True
        if self.action(code) == "FailJob":
            return False
        self.failures += 1
        if self.failures <= self.plan["backoff_limit"]:
            self.start(index)
            return True
        if self.plan["restarts_of_all"] is None or self.restarts == self.plan["restarts_of_all"]:
            return False
        self.restarts += 1
        self.failures = 0
        self.stop()
        for each in range(len(self.plan["pods"])):
            self.start(each)
        return True

    def wait_for_an_end(self, seconds):
        descriptors = [os.pidfd_open(process.pid) for process in self.running.values()]
        select.select(descriptors, [], [], max(seconds, 0))
        for descriptor in descriptors:
            os.close(descriptor)

    def stop(self):
        for process in self.running.values():
            process.kill()
            process.wait()
        self.running = {}

    def run(self, kill, deadline):
        """Kills the pod `kill`, if it is not negative, when there is a first checkpoint."""
        for index in range(len(self.plan["pods"])):
            self.start(index)
        goes_on = True
        while goes_on and self.running:
            assert time.monotonic() < deadline, "too late"
            if kill in self.running and any((self.folder / "claims").rglob("*.index")):
                self.running[kill].kill()
                kill = -1
            self.wait_for_an_end(0.02 if kill in self.running else deadline - time.monotonic())
            for index in list(self.running):
                # One that has ended may have been started again meanwhile, with all.
                if goes_on and (code := self.running[index].poll()) is not None:
                    del self.running[index]
                    goes_on = self.ended(index, code if code >= 0 else 128 - code)
        self.stop()
        return goes_on


def main():
    plan = json.loads(pathlib.Path(sys.argv[1]).read_text())
    folder = pathlib.Path(sys.argv[1]).parent
    pods = Pods(plan, folder)
    done = pods.run(plan["kill"], time.monotonic() + plan["seconds"])
    print(json.dumps({
        "done": done, "codes": [pods.codes.get(i, []) for i in range(len(plan["pods"]))],
        "seen": [root.seen for root in pods.roots],
        "output": [pods.log(i).read_text(errors="replace") for i in range(len(plan["pods"]))]}))


if __name__ == "__main__":
    main()
