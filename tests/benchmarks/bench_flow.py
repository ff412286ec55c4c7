"""Does pretraining on motion find the moving shape in a single frame? Videos of known motion, minutes on a CPU.

    python tests/benchmarks/bench_flow.py [--iterations 1500] [--picture flow.png]

A textured shape moves over a background of the same colours (`lcd.envs.shape_videos`). The map, its sign and its
threshold are chosen on some unseen videos and scored on others, for the pretrained and for the untrained encoder.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from lcd.envs.shape_videos import Videos, moving_shapes
from lcd.frontends.flow.config import FlowConfig
from lcd.frontends.flow.loss import LossConfig
from lcd.pipelines.jobs.pretraining_modules import FlowPretraining
from lcd.pipelines.launch.launchers import keep_freed_memory
from lcd.pipelines.publish.flow_pictures import save_sheet

SIZES = {"width": 16, "stem": 2, "pyramid": 16, "hgru_kernel": 5, "motion": 16, "decoder": 32, "bound": 4.0}
WANTED, UNTRAINED_AT_MOST = 0.7, 0.4
THRESHOLDS = np.linspace(0.02, 0.98, 49)


def iou(found: np.ndarray, truth: np.ndarray) -> float:
    """Mean over frames of intersection over union."""
    both, either = (found & truth).sum((1, 2)), (found | truth).sum((1, 2))
    return float(np.mean(both / np.maximum(either, 1)))


def best_map(maps: np.ndarray, truth: np.ndarray) -> tuple[int, int, float]:
    """The map (N, K, H, W → one of K), sign and threshold that agree best with the truth (N, H, W)."""
    found = []
    for index in range(maps.shape[1]):
        for threshold in np.quantile(maps[:, index], THRESHOLDS):
            for sign in (1, -1):
                score = iou(sign * maps[:, index] > sign * threshold, truth)
                found.append((score, index, sign, float(threshold)))
    return max(found)[1:]


def score(module: FlowPretraining, chosen_on: Videos, scored_on: Videos) -> float:
    """IoU of the map that is best on some videos, on others."""
    training = module.training
    module.eval()
    with torch.no_grad():
        seen = [module.frontend.maps(torch.from_numpy(each.frames[:, 0])).numpy() for each in (chosen_on, scored_on)]
    module.train(training)
    index, sign, threshold = best_map(seen[0], chosen_on.masks[:, 0])
    return iou(sign * seen[1][:, index] > sign * threshold, scored_on.masks[:, 0])


def pretrain(module: FlowPretraining, videos: Videos, iterations: int, batch: int, rng: np.random.Generator) -> float:
    """Learn from pairs of successive frames; returns the seconds it took."""
    optimiser, started = module.configure_optimizers(), time.perf_counter()
    module.train()
    for index in range(iterations):
        video = rng.integers(len(videos.frames), size=batch)
        first = rng.integers(videos.frames.shape[1] - 1, size=batch)
        pairs = np.stack([videos.frames[video, first], videos.frames[video, first + 1]])
        optimiser.zero_grad()
        module.training_step(torch.from_numpy(pairs), index).backward()
        optimiser.step()
    return time.perf_counter() - started


def untrained(seed: int, learning_rate: float = 1e-3, **sizes) -> FlowPretraining:
    """What pretraining begins with."""
    config = FlowConfig(**{**SIZES, **sizes})
    return FlowPretraining(config, LossConfig(), learning_rate, [0.5] * 3, [0.25] * 3, seed)


def main() -> None:
    """Print the table; the exit code says whether both bounds hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--videos", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--picture", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    keep_freed_memory()
    streams = [np.random.default_rng(stream) for stream in np.random.SeedSequence(asked.seed).spawn(4)]
    videos = moving_shapes(asked.videos, 4, streams[0])
    chosen_on, scored_on = (moving_shapes(count, 2, rng) for count, rng in zip((40, 80), streams[1:3], strict=True))
    module = untrained(asked.seed)
    before = score(module, chosen_on, scored_on)
    print(f"untrained: IoU {before:.3f}; the shape covers {scored_on.masks[:, 0].mean():.0%} of a frame", flush=True)
    parts, took = 5, 0.0
    for part in range(1, parts + 1):
        took += pretrain(module, videos, asked.iterations // parts, asked.batch, streams[3])
        after = score(module, chosen_on, scored_on)
        done = part * (asked.iterations // parts)
        loss = module.training_loss()
        print(f"{done:>6} batches, {took:5.0f} s: loss {loss:.5f}, IoU {after:.3f}", flush=True)
    if asked.picture is not None:
        module.eval()
        with torch.no_grad():
            seen = module.see(torch.from_numpy(scored_on.frames[:6].swapaxes(0, 1).copy()))
        save_sheet(asked.picture, [f"video {index}" for index in range(6)], seen, module.heads, f"IoU {after:.2f}")
    good = after >= WANTED and before <= UNTRAINED_AT_MOST
    print(f"{'holds' if good else 'DOES NOT HOLD'}: at least {WANTED} after, at most {UNTRAINED_AT_MOST} before")
    raise SystemExit(not good)


if __name__ == "__main__":
    main()
