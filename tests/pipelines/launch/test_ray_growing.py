"""A real Ray that grows by what waits: its autoscaler, with nodes on this machine."""

import json
import os
import socket
import time
from pathlib import Path

import pytest
import slow_counting
from slow_counting import command, starts_of

from lcd.pipelines.launch.ray import STORE_BYTES

HERE = str(Path(__file__).parents[1])
FAKE = {
    "RAY_FAKE_CLUSTER": "1",
    "AUTOSCALER_UPDATE_INTERVAL_S": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "200",
}
NOTHING = {
    "auth": {"ssh_user": "nobody"}, "file_mounts": {}, "cluster_synced_files": [], "rsync_exclude": [],
    "rsync_filter": [], "file_mounts_sync_continuously": False, "initialization_commands": [], "setup_commands": [],
    "head_setup_commands": [], "worker_setup_commands": [], "head_start_ray_commands": [],
    "worker_start_ray_commands": [],
}  # fmt: skip
"""What the autoscaler wants to be told, and nodes of this machine have no use for."""


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Growing:
    """A head that works on nothing, and an autoscaler that brings up to two nodes of two cores each.

    Args:
        config: the file that takes what the autoscaler is told.
    """

    def __init__(self, config):
        from ray._private.services import get_node_ip_address
        from ray.autoscaler._private.fake_multi_node.node_provider import FAKE_HEAD_NODE_ID, FAKE_HEAD_NODE_TYPE
        from ray.cluster_utils import Cluster

        port = free_port()
        nodes = {"resources": {"CPU": 2, "object_store_memory": STORE_BYTES}, "node_config": {}, "max_workers": 2}
        told = {
            "cluster_name": "growing",
            "max_workers": 2,
            "upscaling_speed": 10,
            "provider": {
                "type": "fake_multinode",
                "launch_multiple": True,
                "gcs_address": f"{get_node_ip_address()}:{port}",
                "disable_node_updaters": True,
                "disable_launch_config_check": True,
            },
            "head_node_type": FAKE_HEAD_NODE_TYPE,
            "available_node_types": {
                FAKE_HEAD_NODE_TYPE: {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
                "worker": nodes,
            },
        }
        config.write_text(json.dumps(told | NOTHING))
        head = {
            "num_cpus": 0,
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
            "gcs_server_port": port,
            "autoscaling_config": str(config),
            "env_vars": {"RAY_OVERRIDE_NODE_ID_FOR_TESTING": FAKE_HEAD_NODE_ID},
        }
        self.cluster = Cluster(initialize_head=True, head_node_args=head)

    def nodes(self):
        """How many nodes there are beside the head."""
        return sum(node["Alive"] for node in self.cluster.global_state.node_table()) - 1


@pytest.fixture
def growing(tmp_path, monkeypatch):
    if not os.environ.get("CI"):
        pytest.importorskip("ray")
    variables = {"PYTHONPATH": HERE, "OMP_NUM_THREADS": "1", slow_counting.PAUSE: "0.4"}
    for name, value in (variables | FAKE).items():
        monkeypatch.setenv(name, value)
    made = Growing(tmp_path / "autoscaler.json")
    monkeypatch.setenv("RAY_ADDRESS", made.cluster.address)
    yield made
    made.cluster.shutdown()


def test_nodes_come_for_what_waits(tmp_path, growing):
    folder, seeds, most = tmp_path / "study", list(range(4)), 0
    assert growing.nodes() == 0, "nobody has anything to do"
    asked = command(folder, seeds, "launcher=ray", "launcher.grace=15")
    while asked.poll() is None:
        most = max(most, growing.nodes())
        time.sleep(0.2)
    assert asked.wait() == 0
    assert 0 < most <= 2
    assert set(starts_of(folder, seeds).values()) == {1}
