"""A recorder on 127.0.0.1 that speaks as much of W&B's protocol as its client needs to start, log and finish a run.

It keeps runs by their name: config, group, job type, tags, summary and the history lines at the offsets that the
client says, as W&B's service does. What it was asked for artifacts it writes down. It can be told to misbehave.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ENTITY = "somebody"


class Recorder:
    """The server, and what it has been told.

    Attributes:
        runs: name → config, group, job_type, tags, summary, history (offset → line), state.
        asked: the names of the GraphQL operations, in their order.
        artifacts: the variables of what asked for artifacts.
        mode: "well", or how it misbehaves: "fails" (500), "hangs", "garbage".
    """

    def __init__(self) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.artifacts: list[dict[str, Any]] = []
        self.streamed: list[dict[str, Any]] = []
        self.sweeps: list[dict[str, Any]] = []
        self.mode = "well"
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"recorder": self}))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def history(self, name: str) -> list[dict[str, Any]]:
        """The rows of a run's history, in their order."""
        lines = self.runs[name]["history"]
        return [json.loads(lines[place]) for place in sorted(lines)]

    # What is asked

    def graphql(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        found = re.search(r"(?:query|mutation)\s+(\w+)", query)
        name = found[1] if found else "?"
        self.asked.append(name)
        if "artifact" in name.lower() or "artifact" in query.lower():
            self.artifacts.append({"operation": name, **variables})
        answer = getattr(self, f"_{name.lower()}", None)
        return answer(variables) if answer else {}

    def _viewer(self, _: Any) -> dict[str, Any]:
        viewer = {"id": "VXNlcg==", "entity": ENTITY, "username": ENTITY, "flags": "{}", "teams": {"edges": []}}
        return {"viewer": viewer | {"email": "somebody@example.org"}}

    def _getdefaultentity(self, _: Any) -> dict[str, Any]:
        return {"viewer": {"id": "VXNlcg==", "entity": ENTITY}}

    def _getrun(self, variables: dict[str, Any]) -> dict[str, Any]:
        run = self.runs.get(variables["name"])
        if run is None:
            return {"project": {"run": None}}
        found = {
            "id": "QnVja2V0", "name": variables["name"], "displayName": run["name"], "state": "running", "tags": [],
            "config": run["config"], "summaryMetrics": run["summary"], "group": run.get("group"), "sweepName": None,
            "jobType": run.get("job_type"), "commit": None, "readOnly": False, "createdAt": "2026-01-01T00:00:00Z",
            "heartbeatAt": None, "description": "", "notes": "", "systemMetrics": "{}", "projectId": "1",
            "historyLineCount": len(run["history"]), "user": {"name": ENTITY, "username": ENTITY}, "metadata": None,
            "historyKeys": {"lastStep": max(run["history"], default=-1), "keys": {}}, "wandbConfig": "{}",
        }  # fmt: skip
        return {"project": {"id": "UHJv", "internalId": "UHJv", "run": found}}

    _run = _runhistorykeys = _getrun

    def _runresumestatus(self, variables: dict[str, Any]) -> dict[str, Any]:
        run = self.runs.get(variables["name"])
        if run is None:
            return {"model": None}
        tail = [line for _, line in sorted(run["history"].items())][-1:]
        bucket = {
            "id": "QnVja2V0", "name": variables["name"], "displayName": run["name"], "summaryMetrics": run["summary"],
            "logLineCount": 0, "historyLineCount": len(run["history"]), "eventsLineCount": 0,
            "historyTail": json.dumps(tail), "eventsTail": "[]", "config": run["config"], "tags": run["tags"],
            "notes": None, "wandbConfig": '{"t": 1}',
        }  # fmt: skip
        return {"model": {"id": "UHJv", "name": variables["project"], "entity": self._entity(), "bucket": bucket}}

    def _upsertbucket(self, variables: dict[str, Any]) -> dict[str, Any]:
        name = variables["name"]
        known = name in self.runs
        run = self.runs.setdefault(name, {"history": {}, "summary": "{}", "config": "{}", "tags": [], "name": ""})
        given = {
            "config": "config", "group": "groupName", "job_type": "jobType", "tags": "tags", "name": "displayName",
            "sweep": "sweep",
        }  # fmt: skip
        run |= {ours: variables[theirs] for ours, theirs in given.items() if variables.get(theirs)}
        project = {"id": "UHJv", "name": variables.get("project") or "lcd", "entity": self._entity()}
        bucket = {"id": "QnVja2V0", "name": name, "displayName": run["name"], "description": None, "sweepName": None}
        bucket |= {"config": run["config"], "historyLineCount": len(run["history"]), "project": project}
        return {"upsertBucket": {"bucket": bucket, "inserted": not known}}

    def _createrunfiles(self, variables: dict[str, Any]) -> dict[str, Any]:
        files = [{"name": name, "uploadUrl": f"{self.url}/upload/{name}"} for name in variables["files"]]
        return {"createRunFiles": {"runID": "QnVja2V0", "uploadHeaders": [], "files": files}}

    def _artifacttype(self, _: Any) -> dict[str, Any]:
        return {"project": {"artifact": None}}

    def _createartifact(self, variables: dict[str, Any]) -> dict[str, Any]:
        # One that the server has already: no file is sent then.
        sequence = {"id": "U0VR", "latestArtifact": {"id": "QVJU", "versionIndex": 0}}
        return {"createArtifact": {"artifact": {"id": "QVJU", "state": "COMMITTED", "artifactSequence": sequence}}}

    def _upsertsweep(self, variables: dict[str, Any]) -> dict[str, Any]:
        self.sweeps.append(variables)
        project = {"id": "UHJv", "name": "lcd", "entity": self._entity()}
        return {"upsertSweep": {"sweep": {"name": "swp1", "project": project}, "configValidationWarnings": []}}

    def _entity(self) -> dict[str, str]:
        return {"id": "RW50", "name": ENTITY}

    def stream(self, name: str, told: dict[str, Any]) -> None:
        """A part of a run's file stream."""
        run = self.runs[name]
        self.streamed.append(told)
        for file, chunk in told.get("files", {}).items():
            if file == "wandb-history.jsonl":
                run["history"] |= {chunk["offset"] + number: line for number, line in enumerate(chunk["content"])}
            elif file == "wandb-summary.json":
                run["summary"] = chunk["content"][-1]
        if told.get("complete"):
            run["state"] = "finished" if told.get("exitcode") == 0 else "failed"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    recorder: Recorder

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer({})

    def do_PUT(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            content = gzip.decompress(content)
        if self._misbehaves():
            return
        found = re.fullmatch(r"/files/[^/]+/[^/]+/([^/]+)/file_stream", self.path)
        if self.path.startswith("/graphql"):
            asked = json.loads(content)
            self._answer({"data": self.recorder.graphql(asked["query"], asked.get("variables") or {})})
        elif found:
            self.recorder.stream(found[1], json.loads(content))
            self._answer({})
        else:
            self._answer({})

    def _misbehaves(self) -> bool:
        mode = self.recorder.mode
        if mode == "hangs":
            time.sleep(600)
        if mode == "fails":
            self._answer({"errors": [{"message": "no"}]}, code=500)
        if mode == "garbage":
            self._send(b"\x00<html>{[", 200)
        return mode != "well"

    def _answer(self, told: Any, code: int = 200) -> None:
        self._send(json.dumps(told).encode(), code)

    def _send(self, content: bytes, code: int) -> None:
        with suppress(OSError):
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
