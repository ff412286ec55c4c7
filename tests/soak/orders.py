"""Every order of hands' steps, for longer than the ordinary tests do (`tests/pipelines/study/test_lease_model.py`).

    python tests/soak/orders.py [--hands 2] [--steps 2] [--switches 2]

Without `--switches` orders of any number of switches are taken. Prints the figures as JSON.
"""

import argparse
import json
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "shared"), str(TESTS / "pipelines" / "study")]

from test_lease_model import orders  # noqa: E402

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hands", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--switches", type=int)
    asked = parser.parse_args()
    begun = time.process_time()
    states = orders(asked.hands, asked.steps, asked.switches)
    print(json.dumps(vars(asked) | {"states": states, "cpu_s": round(time.process_time() - begun, 1), "findings": 0}))
