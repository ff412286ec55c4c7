"""What presets would take of a GPU, as a table of docs/scale.md; counted, with no GPU in sight.

Run it as a script. Evaluation is left out: a forward pass for each held-out step.
"""

from __future__ import annotations

from lcd.config.compose import compose
from lcd.pipelines.study.gpu_needs import CARD_GB, SUSTAINED, gpu_needs
from lcd.pipelines.study.runs import run_config_from

GAME = "task=procgen/starpilot"
EASY = "benchmark=procgen-easy"
FLOW = ["frontend=flow", "frontend.weights=untrained"]
CLIP = ["frontend=clip", "frontend.weights=untrained"]
PRESETS = {
    "PPO, hard": [GAME, "agent=ppo"],
    "PPG, hard": [GAME, "agent=ppg"],
    "PPO, easy": [GAME, EASY, "agent=ppo"],
    "PPG, easy": [GAME, EASY, "agent=ppg"],
    "PPO, hard, one seed a run": [GAME, "agent=ppo", "seeds=1"],
    "PPO, hard, flow": [GAME, "agent=ppo", *FLOW],
    "PPO, hard, flow, `frontend.disk_gb=29`": [GAME, "agent=ppo", *FLOW, "frontend.disk_gb=29"],
    "PPO, hard, CLIP": [GAME, "agent=ppo", *CLIP],
    "PPO, `budget=cpu`": [GAME, "agent=ppo", "budget=cpu"],
    "PPG, `budget=cpu`": [GAME, "agent=ppg", "budget=cpu"],
}


def main() -> None:
    """Print the table."""
    print(f"At {SUSTAINED / 1e12:g} TFLOP/s:")
    print(f"| preset | seeds, steps | GFLOP a step | GPU hours | memory | at once on {CARD_GB} GB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, words in PRESETS.items():
        config = run_config_from(compose("train", words))
        needs = gpu_needs(config)
        assert needs is not None
        seeds, steps = len(config["seeds"]), config["steps"]
        each = needs.operations / seeds / steps / 1e9
        at_once = f"{needs.at_once:,}" if needs.at_once else "all"
        print(
            f"| {name} | {seeds}, {steps / 1e6:.3g} M | {each:.3g} | {needs.hours:.3g} | "
            f"{needs.memory / 1e9:.3g} GB | {at_once} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
