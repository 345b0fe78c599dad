"""The manifests of examples/deploy fit their schemas; what they say is run, as pods and hosts would run it,
until a real training is done."""

import configparser
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys

import kubeflow_trainer_api.models
import kubernetes_validate
import pytest
import yaml

HERE = pathlib.Path(__file__).resolve().parent
DEPLOY = HERE.parents[1] / "examples" / "deploy"
BIN = pathlib.Path(os.environ["COHORT_PROBE"]).parent
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
JOB = DEPLOY / "kubernetes" / "job.yaml"
TRAIN_JOB = DEPLOY / "kubeflow" / "trainjob.yaml"

sys.path.insert(0, str(HERE))
import pods  # noqa: E402


def documents(file):
    return list(yaml.safe_load_all(file.read_text()))


def validate(document):
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def missing_in(found, wanted, at=""):
    """What is in `wanted` and not in `found`; models add values that nobody has given."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [line for name in wanted for line in (
            missing_in(found[name], wanted[name], f"{at}.{name}") if name in found else [f"{at}.{name}"])]
    if isinstance(wanted, list) and isinstance(found, list) and len(found) == len(wanted):
        return [line for i, pair in enumerate(zip(found, wanted))
                for line in missing_in(*pair, f"{at}[{i}]")]
    return [] if found == wanted else [f"{at}: {wanted} became {found}"]


def validate_of_trainer(document):
    """Kubeflow's models pass over a name that they do not know: it is missing in what they write."""
    model = getattr(kubeflow_trainer_api.models, f"TrainerV1alpha1{document['kind']}")
    read = model.from_dict(document)
    assert read is not None
    assert missing_in(read.to_dict(), document) == []


@pytest.mark.parametrize("file", [*MANIFESTS, TRAIN_JOB], ids=lambda file: file.name)
def test_manifests_fit_the_schemas(file):
    assert documents(file)
    for document in documents(file):
        if document["apiVersion"].startswith("trainer.kubeflow.org/"):
            validate_of_trainer(document)
        else:
            validate(document)


def test_the_job_of_the_trainjob_fits_the_schemas():
    """Kubeflow's models are lax about what they take from Kubernetes."""
    runtime = pods.only(pods.of_kind(documents(TRAIN_JOB), "TrainingRuntime"))
    replicated = pods.only(runtime["spec"]["template"]["spec"]["replicatedJobs"])
    validate({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"},
              "spec": replicated["template"]["spec"]})
    # Trainer looks for a job and a container of these names.
    assert replicated["name"] == "node"
    assert pods.only(replicated["template"]["spec"]["template"]["spec"]["containers"])["name"] == "node"


def test_an_unknown_property_would_be_found():
    with pytest.raises(kubernetes_validate.ValidationError):
        validate(documents(JOB)[0] | {"speck": {}})
    train_job = pods.only(pods.of_kind(documents(TRAIN_JOB), "TrainJob"))
    with pytest.raises(AssertionError):
        validate_of_trainer({**train_job, "spec": {**train_job["spec"], "trainers": {}}})


KUBECTL = """#!/bin/bash
set -eu
case "$1 $2" in
  "apply -f") [[ -e $MANIFESTS/$3 ]] ;;
  "create secret")
    [[ $3 == generic ]]
    secret=$SECRETS/$4
    shift 4
    mkdir "$secret"
    while (($#)); do
      [[ $1 == --from-file ]]
      if [[ -d $2 ]]; then cp "$2"/* "$secret"; else cp "$2" "$secret"; fi
      shift 2
    done ;;
  *) exit 1 ;;
esac
"""


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def follow_instructions(file, folder):
    """Runs the commands that a manifest's first comment gives; returns the folder of the secrets."""
    comment = re.match(r"(?:#.*\n)+", file.read_text())[0]
    commands = "\n".join(line[4:] for line in comment.splitlines() if line.startswith("#   "))
    secrets = folder / "secrets"
    secrets.mkdir()
    executable(folder / "bin" / "kubectl", KUBECTL)
    (folder / "work").mkdir()
    subprocess.run(["bash", "-euc", commands], check=True, cwd=folder / "work",
                   env={**os.environ, "PATH": f"{folder / 'bin'}:{BIN}:{os.environ['PATH']}",
                        "SECRETS": str(secrets), "MANIFESTS": str(file.parent)})
    return secrets


def copy_program(program, image):
    """The program and those of its libraries that are not the host's own."""
    shutil.copy(program, image)
    linked = subprocess.run(["ldd", str(program)], check=True, stdout=subprocess.PIPE, text=True).stdout
    for library in re.findall(r"=> (/\S+)", linked):
        if library.split("/")[1] not in pods.SEEN_IN_IMAGE:
            shutil.copy(library, image)


def make_image(folder):
    """The example multi_worker under the name that the manifests use, with little to do."""
    image = folder / "image"
    image.mkdir(mode=0o755)
    copy_program(BIN / "multi_worker", image)
    executable(image / "train", "#!/bin/sh\nexport LD_LIBRARY_PATH=/image\n"
               "exec /image/multi_worker --epochs 2 \"$@\"\n")
    return image


def run_pods(manifest, folder, kill=-1, change=None):
    plan = pods.plan_of(documents(manifest), make_image(folder),
                        follow_instructions(manifest, folder))
    if change:
        change(plan)
    (folder / "plan.json").write_text(json.dumps({**plan, "kill": kill, "seconds": 240}))
    done = subprocess.run(["unshare", "--net", "--mount", "--propagation", "private", sys.executable,
                           str(HERE / "pods.py"), str(folder / "plan.json")],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("manifest", [JOB, TRAIN_JOB], ids=lambda file: file.name)
def test_pods_train_to_the_end(manifest, tmp_path):
    found = run_pods(manifest, tmp_path)
    assert found["codes"] == [[0], [0], [0]], found["output"]
    assert found["done"]
    for index, seen in enumerate(found["seen"]):
        assert seen["/etc/cohort"] == ["ca.pem", f"worker-{index}.key", f"worker-{index}.pem"]
    secrets = {path.name: sorted(file.name for file in path.iterdir())
               for path in (tmp_path / "secrets").iterdir()}
    assert secrets == {f"train-worker-{i}": ["ca.pem", f"worker-{i}.key", f"worker-{i}.pem"]
                       for i in range(3)}


@pytest.mark.parametrize("manifest", [JOB, TRAIN_JOB], ids=lambda file: file.name)
def test_pods_go_on_after_one_is_killed(manifest, tmp_path):
    found = run_pods(manifest, tmp_path, kill=1)
    assert found["done"], found["output"]
    assert [codes[-1] for codes in found["codes"]] == [0, 0, 0], found["output"]
    assert 137 in found["codes"][1]


@pytest.mark.parametrize("manifest", [JOB, TRAIN_JOB], ids=lambda file: file.name)
def test_a_wrong_configuration_ends_the_job_at_once(manifest, tmp_path):
    def without_certificates(plan):
        for pod in plan["pods"]:
            del pod["environment"]["COHORT_CERTIFICATES"]

    found = run_pods(manifest, tmp_path, change=without_certificates)
    assert not found["done"]
    assert [64] in found["codes"], found
    assert all(len(codes) <= 1 for codes in found["codes"]), found["codes"]


def test_labels_yaml_says_what_its_tasks_need():
    """What its program asks of the API is tested elsewhere (kubernetes_cluster_resolver_test)."""
    spec = pods.only(pods.of_kind(documents(DEPLOY / "kubernetes" / "labels.yaml"), "Job"))["spec"]
    job = pods.find_job(documents(JOB))[0]
    for same in ("backoffLimit", "podFailurePolicy", "podReplacementPolicy", "completionMode"):
        assert spec[same] == job[same], same
    for index in range(3):
        pod = pods.pod_of({**spec, "template": {"spec": {**spec["template"]["spec"], "containers": [
            {**pods.only(spec["template"]["spec"]["containers"]), "command": []}]}}}, "train", "", index)
        assert pod["environment"]["COHORT_CERTIFICATES"] == "/etc/cohort"
        mount = pods.only(pod["mounts"])
        assert [path for _, _, path, _ in mount["files"] if path.startswith(mount["sub_path"] + "/")] == [
            f"worker-{index}/{name}" for name in (f"worker-{index}.pem", f"worker-{index}.key", "ca.pem")]


@pytest.mark.parametrize("code, restarts, queued_again", [
    (0, 0, False), (1, 0, False), (64, 0, False), (65, 0, False), (127, 0, False), (134, 0, True),
    (137, 0, True), (138, 9, True), (143, 0, True), (138, 10, False), (137, 11, False)])
def test_train_sbatch_is_queued_again_where_that_may_help(code, restarts, queued_again, tmp_path):
    executable(tmp_path / "srun", f"#!/bin/sh\necho $COHORT_CERTIFICATES\nexit {code}\n")
    executable(tmp_path / "scontrol", "#!/bin/sh\necho scontrol \"$@\"\n")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": "/home/me", "SLURM_JOB_ID": "7",
                   "SLURM_CPUS_PER_TASK": "4"}
    if restarts:  # Slurm sets none at first
        environment["SLURM_RESTART_COUNT"] = str(restarts)
    done = subprocess.run(["bash", str(DEPLOY / "slurm" / "train.sbatch"), "./train"], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == code
    said = done.stdout.splitlines()
    assert said[0] == "/home/me/train-certificates"
    assert said[1:] == (["scontrol requeue 7"] if queued_again else []), done.stderr


def unit(file):
    """A unit of systemd. A key that stands twice has its last value: none that is needed does."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str
    parser.read_string(file.read_text())
    return parser


def test_systemd_units_hold(tmp_path):
    """systemd's own check, with a program and a user that are here."""
    for file in (DEPLOY / "systemd").iterdir():
        text = file.read_text().replace("/usr/local/bin/train", "/bin/true")
        (tmp_path / file.name.replace("@", "@0")).write_text(text)
    units = sorted(str(path) for path in tmp_path.iterdir())
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    about_ours = [line for line in done.stdout.splitlines() if "cohort-worker" in line]
    assert done.returncode == 0 and not about_ours, done.stdout


def as_systemd(folder, index, hosts, files):
    """The command of worker `index` of these hosts: the unit's, with its listener and environment."""
    service = unit(DEPLOY / "systemd" / "cohort-worker@.service")["Service"]
    listener = unit(DEPLOY / "systemd" / "cohort-worker@.socket")["Socket"]["ListenStream"]
    comment = (DEPLOY / "systemd" / "cohort-worker@.service").read_text()
    line = re.search(r"^#   (TF_CONFIG=.*)$", comment, re.M)[1]
    assert f"host1:{listener}" in line
    tf_config = json.loads(re.fullmatch("TF_CONFIG='(.*)'", line)[1])
    tf_config["cluster"]["worker"] = hosts
    tf_config["task"]["index"] = index
    name, value = service["Environment"].split("=")
    assert value == "/etc/cohort"
    return {"TF_CONFIG": json.dumps(tf_config), name: str(files)}


def test_systemd_units_train_to_the_end(tmp_path):
    """Two workers of this host, each with a listener that is there before it and its files only."""
    comment = (DEPLOY / "systemd" / "cohort-worker@.service").read_text()
    command = re.search(r"^#   (cohort cluster certificates .*)$", comment, re.M)[1]
    subprocess.run(["bash", "-euc", command], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL,
                   env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"})
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    hosts = [f"127.0.0.1:{each.getsockname()[1]}" for each in listeners]
    workers = []
    for index, listener in enumerate(listeners):
        files = tmp_path / f"etc{index}"
        files.mkdir()
        for name in ("ca.pem", f"worker-{index}.pem", f"worker-{index}.key"):
            shutil.copy(tmp_path / "certificates" / name, files)
        environment = {**os.environ, **as_systemd(tmp_path, index, hosts, files), "LISTEN_FDS": "1"}
        # Descriptor 3 is the first that systemd gives.
        program = (f"exec 3<&{listener.fileno()}; export LISTEN_PID=$$; "
                   f"exec {BIN / 'multi_worker'} --epochs 1")
        workers.append(subprocess.Popen(["bash", "-c", program], env=environment,
                                        pass_fds=[listener.fileno()], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    for worker in workers:
        output, _ = worker.communicate(timeout=240)
        assert worker.returncode == 0, output
    for listener in listeners:
        listener.close()
