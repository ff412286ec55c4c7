"""What the CT-graph's views show: the same ids in all of them, noisy and turned instances in pixels, own images."""

from __future__ import annotations

import numpy as np
import pytest

from lcd.envs.ctgraph.graph import CTGraphVectorEnv
from lcd.envs.ctgraph.images import image_set, labels, rotate
from lcd.envs.ctgraph.knobs import GraphKnobs, ImageDataset
from lcd.envs.ctgraph.layout import DECISION, END, FAIL, HOME, WAIT, nodes
from lcd.envs.ctgraph.scripted import policy_actions
from lcd.envs.errors import InputError


def make(num_envs=1, view="state", seed=0, **knobs) -> CTGraphVectorEnv:
    env = CTGraphVectorEnv(num_envs, view=view, seed=seed, **knobs)
    env.reset()
    return env


def walk(view, steps=60, **knobs):
    """Ids and observations along one random walk, the same in every view."""
    env = make(8, view=view, seed=3, **knobs)
    rng = np.random.default_rng(1)
    ids, shown = [env.observation_ids], [env.reset(seed=3)[0]]
    for _ in range(steps):
        actions = policy_actions(env, "navigation", rng)
        shown.append(env.step(actions)[0])
        ids.append(env.observation_ids)
    return np.concatenate(ids), np.concatenate(shown), env


CONFUSING = {
    "graph_shape": {"p": 0.5},
    "observations": {"W_IDs": [5, 30], "D_IDs": [2, 4]},
    "image_dataset": {"noise_on_read": 0.1, "rotation_on_read": 5},
}


def test_all_views_show_the_same_ids():
    walks = {view: walk(view, **CONFUSING) for view in ("pixels", "figure_ground", "semantic", "state")}
    ids, one_hot, env = walks["state"]
    assert len(set(ids)) > 20
    assert (one_hot.argmax(axis=1) == ids).all()
    assert all((walked[0] == ids).all() for walked in walks.values())
    images = image_set(env.knobs.image_dataset, env.knobs.num_ids)
    assert (walks["figure_ground"][1] == images.clean[ids]).all()
    assert (walks["semantic"][1] == labels(env.knobs.num_ids)[ids]).all()
    assert walks["pixels"][1].shape == walks["semantic"][1].shape == (len(ids), 12, 12, 3)


def test_pixels_are_noisy_and_turned_instances_of_the_class():
    ids, shown, env = walk("pixels", **CONFUSING)
    images = image_set(env.knobs.image_dataset, env.knobs.num_ids)
    instances = [shown[ids == i] for i in set(ids)]
    assert all(len(np.unique(of_id, axis=0)) == len(of_id) for of_id in instances)
    rotations = [rotate(images.clean, angle) for angle in range(6)]
    for image, of_id in zip(shown[:80], ids[:80], strict=True):
        noise = [image.astype(int) - turned[of_id] for turned in rotations]
        assert any(n.min() >= 0 and n.max() <= 26 for n in noise)
    spread = np.concatenate([(i - i.mean(axis=0)).ravel() for i in instances])
    assert 5 < spread.std() < 40
    still = walk("pixels", observations=CONFUSING["observations"], image_dataset={})
    assert (still[1] == image_set(ImageDataset(), 31).clean[still[0]]).all()


def test_what_each_kind_of_graph_shows():
    fully = GraphKnobs.from_dict({"graph_shape": {"b": 3}, "observations": {"MDP_D": True, "MDP_W": True}})
    shown = [node.ids for node in nodes(fully)]
    assert all(first == last for first, last in shown)
    assert len(set(shown)) == len(shown) == fully.num_ids
    surjective = GraphKnobs.from_dict({"observations": {"W_IDs": [3, 3], "D_IDs": [2, 2]}})
    assert surjective.id_sets == {"H_IDs": (0, 0), "W_IDs": (3, 3), "D_IDs": (2, 2), "E_IDs": (4, 4), "F_IDs": (1, 1)}
    assert surjective.num_ids == 5
    confounding = GraphKnobs.from_dict({"observations": {"W_IDs": [3, 102], "D_IDs": [2, 2]}})
    assert {node.ids for node in nodes(confounding) if node.kind == WAIT} == {(3, 102)}


def test_ids_are_uniform_over_their_sets_and_fixed_where_states_have_their_own():
    sets = {"H_IDs": [0, 3], "F_IDs": [4, 7], "W_IDs": [8, 11], "D_IDs": [12, 15], "E_IDs": [16, 19]}
    env = make(500, observations=sets)
    rng = np.random.default_rng(0)
    seen = {kind: [] for kind in range(5)}
    for step in range(60):
        _, _, terminations, _, infos = env.step(policy_actions(env, "navigation" if step % 2 else "random", rng))
        for kind in (HOME, WAIT, DECISION):
            seen[kind].append(env.observation_ids[env.kinds == kind])
        if terminations.any():
            final = infos["final_obs"][terminations].argmax(axis=1)
            seen[END].append(final[final >= 16])
            seen[FAIL].append(final[final < 16])
    for kind, (low, high) in zip((HOME, FAIL, WAIT, DECISION, END), sets.values(), strict=True):
        counts = np.bincount(np.concatenate(seen[kind]), minlength=20)
        assert counts.sum() == counts[low : high + 1].sum()
        share = counts[low : high + 1] / counts.sum()
        assert (abs(share - 0.25) < 4 * np.sqrt(0.1875 / counts.sum())).all()


def test_images_of_the_users_own(tmp_path):
    from PIL import Image

    rng = np.random.default_rng(0)
    pictures = rng.integers(256, size=(5, 3, 16, 20, 3)).astype(np.uint8)
    for number, of_class in enumerate(pictures):
        (tmp_path / "classes" / f"class-{number}").mkdir(parents=True)
        for instance, picture in enumerate(of_class):
            Image.fromarray(picture).save(tmp_path / "classes" / f"class-{number}" / f"{instance}.png")
    np.savez(tmp_path / "set.npz", images=pictures.reshape(-1, 16, 20, 3), labels=np.repeat([3, 5, 6, 7, 9], 3))
    for path in ("classes", "set.npz"):
        knobs = {"image_dataset": {"path": str(tmp_path / path)}, "graph_shape": {"p": 0.5}}
        ids, shown, _ = walk("pixels", **knobs)
        instance = [(pictures[i] == image).all(axis=(1, 2, 3)).argmax() for i, image in zip(ids, shown, strict=True)]
        assert (pictures[ids, instance] == shown).all()
        assert len(set(instance)) == 3
        assert (walk("figure_ground", **knobs)[1] == pictures[ids, 0]).all()
        assert walk("semantic", **knobs)[1].shape == shown.shape
    with pytest.raises(InputError, match="5 classes, but the graph shows 7"):
        make(view="pixels", observations={"W_IDs": [6, 6]}, image_dataset={"path": str(tmp_path / "set.npz")})
    with pytest.raises(InputError, match="no folder of images"):
        make(view="pixels", image_dataset={"path": str(tmp_path / "nothing")})
