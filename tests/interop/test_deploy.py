"""The manifests of examples/deploy fit Kubernetes' own schemas, and say what their tasks read."""

import json
import os
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "examples" / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))


def documents(file):
    return list(yaml.safe_load_all(file.read_text()))


def validate(document):
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def only(found):
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.name)
def test_manifests_fit_the_schemas(file):
    assert documents(file)
    for document in documents(file):
        validate(document)


def test_an_unknown_property_would_be_found():
    document = documents(MANIFESTS[0])[0]
    with pytest.raises(kubernetes_validate.ValidationError):
        validate(document | {"speck": {}})


def test_the_pods_of_the_tfjob_fit_the_schemas():
    """A TFJob is no resource of Kubernetes' own, but what its replicas are made of is."""
    job = only(documents(DEPLOY / "kubeflow" / "tfjob.yaml"))
    assert set(job["spec"]["tfReplicaSpecs"]) == {"Chief", "Worker", "PS"}
    for name, replica in job["spec"]["tfReplicaSpecs"].items():
        validate({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name.lower()},
                  **replica["template"]})
        assert replica["restartPolicy"] == "ExitCode"
        # The operator looks for a container and a port of these names.
        container = only(replica["template"]["spec"]["containers"])
        assert container["name"] == "tensorflow"
        assert only(container["ports"])["name"] == "tfjob-port"


@pytest.mark.parametrize("index", [0, 2])
def test_each_pod_of_the_stateful_set_has_its_tf_config(index):
    found = documents(DEPLOY / "kubernetes" / "statefulset.yaml")
    stateful_set = only([document for document in found if document["kind"] == "StatefulSet"])
    service = only([document for document in found if document["kind"] == "Service"])
    name = stateful_set["metadata"]["name"]
    container = only(stateful_set["spec"]["template"]["spec"]["containers"])
    shell, option, script = container["command"]
    assert "exec train" in script
    printed = subprocess.run(
        [shell, option, script.replace("exec train", 'printf %s "$TF_CONFIG"')],
        env={**os.environ, "HOSTNAME": f"{name}-{index}"}, check=True, capture_output=True, text=True)
    tf_config = json.loads(printed.stdout)
    port = only(service["spec"]["ports"])["port"]
    assert service["metadata"]["name"] == stateful_set["spec"]["serviceName"]
    assert service["spec"]["selector"].items() <= stateful_set["spec"]["template"]["metadata"][
        "labels"].items()
    assert tf_config["cluster"]["worker"] == [
        f"{name}-{ordinal}.{service['metadata']['name']}:{port}"
        for ordinal in range(stateful_set["spec"]["replicas"])]
    assert tf_config["task"] == {"type": "worker", "index": index}
