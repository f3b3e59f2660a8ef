"""The Helm chart: its settings exist, pods drain before they are killed, and helm accepts it."""

import json
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from server.operations.settings import unknown_variables
from tests.architecture.project_files import ROOT, text_of

CHART = "deploy/helm/kvasir"
needs_helm = pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")


def _values() -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(text_of(f"{CHART}/values.yaml"))
    return values


def test_every_variable_is_a_setting() -> None:
    in_template = re.findall(r"name: (KVASIR_\w+)", text_of(f"{CHART}/templates/deployment.yaml"))
    assert in_template
    assert not unknown_variables([*in_template, *_values()["settings"]])


def test_a_pod_drains_before_it_is_killed() -> None:
    values = _values()
    drain = float(values["settings"]["KVASIR_DRAIN_TIMEOUT_SECONDS"])
    assert values["preStopSeconds"] + drain < values["terminationGracePeriodSeconds"]


def test_the_user_of_the_pod_is_that_of_the_image() -> None:
    [user] = re.findall(r"--uid (\d+)", text_of("Dockerfile"))
    assert f"runAsUser: {user}\n" in text_of(f"{CHART}/templates/deployment.yaml")


@needs_helm
@pytest.mark.parametrize("scaling", ["", "cpu", "keda"])
def test_helm_renders_the_chart(scaling: str) -> None:
    subprocess.run(["helm", "lint", "--strict", CHART], cwd=ROOT, check=True, capture_output=True)
    command = ["helm", "template", "kvasir", CHART, "--set", f"autoscaling.kind={scaling}"]
    rendered = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    kinds = {manifest["kind"]: manifest for manifest in yaml.safe_load_all(rendered) if manifest}
    assert set(kinds) - {"HorizontalPodAutoscaler", "ScaledObject"} == {
        "Deployment",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
    }
    assert ("replicas" in kinds["Deployment"]["spec"]) == (not scaling)


@needs_helm
def test_keda_counts_the_pods_of_this_release_and_scales_by_rows_in_use() -> None:
    command = ["helm", "template", "kvasir", CHART, "--namespace", "prod", "--set", "autoscaling.kind=keda"]
    rendered = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    [scaled] = [each for each in yaml.safe_load_all(rendered) if each and each["kind"] == "ScaledObject"]
    queries = [trigger["metadata"]["query"] for trigger in scaled["spec"]["triggers"]]
    # An overloaded server rejects requests and keeps its queue short, so the queue alone would add no pod.
    assert [re.findall(r"kvasir_\w+", query) for query in queries] == [
        ["kvasir_rows_in_use_ratio"],
        ["kvasir_sentences_waiting"],
    ]
    for query in queries:
        [pods] = re.findall(r'namespace="prod", pod=~"(.+?)"', query)
        assert re.fullmatch(pods, "kvasir-7d9f6c5b48-x2x4p")
        assert not re.fullmatch(pods, "kvasir-staging-7d9f6c5b48-x2x4p"), "another release"


@needs_helm
def test_variables_come_from_secrets() -> None:
    secret = {"secretRef": {"name": "traces"}}
    command = ["helm", "template", "kvasir", CHART, "--show-only", "templates/deployment.yaml"]
    rendered = subprocess.run(
        [*command, "--set-json", f"envFrom=[{json.dumps(secret)}]"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    [container] = yaml.safe_load(rendered)["spec"]["template"]["spec"]["containers"]
    assert container["envFrom"] == [secret]


@needs_helm
def test_the_network_policy_lets_traces_out() -> None:
    collector = {"to": [{"podSelector": {"matchLabels": {"app": "collector"}}}], "ports": [{"port": 4318}]}
    assert _egress() == []
    assert _egress("--set-json", f"networkPolicy.egress=[{json.dumps(collector)}]") == [collector]


def _egress(*arguments: str) -> list[dict[str, Any]]:
    command = ["helm", "template", "kvasir", CHART, "--show-only", "templates/network_policy.yaml", *arguments]
    rendered = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    rules: list[dict[str, Any]] = yaml.safe_load(rendered)["spec"]["egress"]
    return rules
