"""Composed configs: what the command line can say, and that every mistake is one helpful sentence."""

import shlex

import pytest

from lcd.config import budgets
from lcd.config.budgets import choices
from lcd.config.chosen_files import defaults
from lcd.config.compose import compose
from lcd.config.help import key_table
from lcd.config.keys import GROUPS, groups, registered, schema_fields
from lcd.config.nested import flatten
from lcd.config.schemas import SCHEMAS
from lcd.config.settings import check_choices
from lcd.config.values import seed_list
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.errors import InputError

SETTINGS = ("ppo_procgen", "ppo_cpu", "ppg_procgen", "ppg_cpu", "ppo_points", "ppo_sb3", "dqn_points")
TASK = "task=toy/easy-sight-easy-reward"


def test_defaults_are_the_papers_conditions():
    cfg = compose("diagnose", ["benchmark=toy"])
    assert cfg.benchmark.name == "toy"
    assert cfg.agent["name"] == "ppo"
    assert cfg.frontend == {"name": "identity"}
    # Those of φ and ψ.
    assert (cfg.study.views, cfg.study.reward_p) == (None, None)
    assert cfg.study.tasks is None
    assert cfg.study.seeds >= 5
    assert cfg.study.steps is None
    assert (cfg.tracker.name, cfg.tracker.settings["mode"]) == ("wandb", "offline")
    assert (cfg.launcher.workers, cfg.launcher.threads) == ("auto", 1)


@pytest.mark.parametrize(
    ("command", "one", "other"),
    [
        ("diagnose", "seeds=3 steps=64 tasks=[toy/a]", "study.seeds=3 study.steps=64 study.tasks=[toy/a]"),
        ("sweep", "grid.knobs.delay=[0,2] evaluation.every=9", "study.grid.knobs.delay=[0,2] study.evaluation.every=9"),
        ("diagnose", "'agent_params={my:Agent: {x: 1}}'", "'study.agent_params={my:Agent: {x: 1}}'"),
        ("train", f"{TASK} study.seeds=3 study.evaluation.every=9", f"{TASK} seeds=3 evaluation.every=9"),
    ],
)
def test_every_key_has_one_spelling_in_all_commands(command, one, other):
    assert compose(command, shlex.split(one)) == compose(command, shlex.split(other))


def test_groups_and_keys_are_overridden():
    words = "study.seeds=[3,7] benchmark=toy budget=smoke out=my/study tracker=none launcher.workers=1 agent.gamma=0.9"
    cfg = compose("diagnose", words.split())
    assert (cfg.study.name, cfg.budget) == ("lcd", "smoke")
    assert cfg.study.seeds == [3, 7]
    assert cfg.out == "my/study"
    assert cfg.tracker.name == "none"
    assert cfg.launcher.workers == 1
    assert cfg.agent["gamma"] == 0.9


def test_lcd_train_takes_a_task_and_its_knobs():
    words = [
        TASK,
        "view=semantic",
        "reward_p=0.5",
        "seeds=3",
        "steps=5000",
        "task.knobs.delay=2",
        "evaluation.every=500",
    ]
    cfg = compose("train", words)
    assert cfg.task.name == "toy/easy-sight-easy-reward"
    assert cfg.task.knobs == {"delay": 2}
    assert (cfg.view, cfg.reward_p, cfg.seeds, cfg.steps, cfg.evaluation.every) == ("semantic", 0.5, 3, 5000, 500)


def test_names_of_third_parties_need_no_file():
    words = ["benchmark=mine.envs:Mine", "agent=mine:Agent", "agent.depth=3", "frontend=mine:Eye", "task=a task"]
    cfg = compose("train", words)
    assert cfg.benchmark.name == "mine.envs:Mine"
    assert cfg.agent == {"name": "mine:Agent", "depth": 3}
    assert cfg.frontend == {"name": "mine:Eye"}
    assert cfg.task.name == "a task"


@pytest.mark.parametrize(
    "path", ["a b/c.csv", "a=b.csv", "x(1),[2].csv", "it's.csv", "~/x.csv", "c:\\x.csv", "7", "null.csv"]
)
def test_paths_are_taken_as_they_are(path):
    cfg = compose("report", [f"path={path}", f"out={path}"])
    assert (cfg.path, cfg.out) == (path, path)
    if "=" not in path:
        assert compose("report", [path]).path == path


def test_positional_words():
    assert compose("list", ["tasks"]).what == "tasks"
    assert compose("list").what is None
    assert compose("doctor") == SCHEMAS["doctor"]()


@pytest.mark.parametrize(
    ("command", "words", "right"),
    [
        ("diagnose", ["benchmark=atari", "task.knobs.longest=400"], "study.knobs.longest"),
        ("check", ["atari", "task.knobs.longest=400"], "study.knobs.longest"),
        ("train", ["task=toy/easy-sight-easy-reward", "study.knobs.delay=2"], "task.knobs.delay"),
        ("view", ["toy/easy-sight-easy-reward", "study.knobs.delay=2"], "task.knobs.delay"),
    ],
)
def test_a_knob_under_another_commands_key_is_told_its_own(command, words, right):
    given = words[-1].partition("=")[0]
    with pytest.raises(InputError, match=f"^{given} is not a key of 'lcd {command}': there it is {right}.$"):
        compose(command, words)


MISTAKES = [
    ("agent=pppo", "agent=pppo is unknown: did you mean 'ppo'?"),
    ("benchmark=tyo", "did you mean 'toy'?"),
    ("frontend=identiti", "did you mean 'identity'?"),
    ("budget=smoek", "did you mean 'smoke'?"),
    ("budget.seeds=3", "did you mean 'study.seeds'?"),
    ("tracker=wand", "did you mean 'wandb'?"),
    ("launcher=slum", "launcher=slum is unknown: did you mean 'slurm'?"),
    ("launcher=pbs", "launcher=pbs is unknown: choose from: local, ray, slurm."),
    ("launcher.settings.queue=x", "is not a key of 'lcd diagnose'"),
    ("tracker.a.b=3", "is not a key of 'lcd diagnose'"),
    ("study.sedes=3", "study.sedes is not a key of 'lcd diagnose': did you mean 'study.seeds'?"),
    ("+study.sedes=3", "did you mean 'study.seeds'?"),
    ("sedes=3", "did you mean 'study.seeds'?"),
    ("task=toy/x", "'lcd diagnose' takes no task; did you mean 'study.tasks'?"),
    ("nothing.like.it=3", "'lcd diagnose --help' lists the keys"),
    ("study.seeds=many", "study.seeds=many must be a number of seeds"),
    ("study.seeds=0", "must be a number of seeds"),
    ("study.seeds=true", "must be a number of seeds"),
    ("study.seeds=[1,1]", "list of different seeds"),
    ("study.seeds=[-1]", "list of different seeds"),
    ("study.seeds=1,2", "write a list as study.seeds=[1,2]"),
    ("study.steps=many", "study.steps=many must be a whole number of at least 1"),
    ("study.steps=1.5", "must be a whole number of at least 1"),
    ("study.steps=0", "must be a whole number of at least 1"),
    ("study.steps={ppo:0}", "must be a whole number of at least 1"),
    ("study.steps={pppo:10}", "study.steps.pppo is no agent: did you mean 'ppo'?"),
    ("study.views=pixels", "it must be a list of names"),
    ("study.reward_p=[1,2]", "must lie in (0, 1]"),
    ("study.reward_p=[]", "must lie in (0, 1]"),
    ("study.shaping=some", "did you mean 'none'?"),
    ("study.evaluation=3", "give one of study.evaluation.contexts"),
    ("study.evaluation.every=-5", "at least 1"),
    ("launcher.workers=lots", "must be auto or a whole number of at least 1"),
    ("launcher.workers=0", "must be auto or a whole number of at least 1"),
    ("device=gpu", "device=gpu is unknown"),
    ("out=", "out is empty"),
    ("study.views=[pixels", "cannot be read"),
    ("study.name=${nothing}", "cannot be composed"),
    ("~study.steps", "give key=value"),
    ("--seeds", "give key=value"),
    ("toy", "give key=value"),
    ("agent@other=ppo", "is not understood"),
    ("agent._target_=os.system", "agent._target_ is not allowed"),
    ("agent.inner={_target_:os.system}", "agent.inner._target_=os.system is not allowed"),
    ("agent=custom", "agent.name is missing"),
]


@pytest.mark.parametrize(("override", "sentence"), MISTAKES)
def test_mistakes_are_one_sentence(override, sentence):
    with pytest.raises(InputError) as mistake:
        compose("diagnose", [override])
    assert sentence in str(mistake.value)
    assert "\n" not in str(mistake.value)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("tracker.mode=of", "tracker.mode=of is unknown: choose from: disabled, offline, online."),
        ("tracker.moode=offline", "tracker.moode is not a setting of tracker=wandb: did you mean 'mode'?"),
        ("launcher.wrkers=2", "launcher.wrkers is not a setting of launcher=local: did you mean 'workers'?"),
        ("launcher=nothing:here", "The launcher 'nothing:here' cannot be imported"),
        ("analyses=[synergie]", "analyses=[synergie] is unknown: did you mean 'synergy'?"),
        ("sections=[method]", "sections=[method] is unknown: did you mean 'methods'?"),
        ("analysis_params={synergy: {x: 1}}", "analysis_params.synergy.x is not a setting of analysis 'synergy'"),
        ("section_params={method: {x: 1}}", "section_params.method: sections has no such section: did you mean"),
        ("analysis_params={my:own: {x: 1}}", "name it there, analyses=[all,my:own], or leave this out."),
        ("analyses=[al,taxonomy]", "analyses=[al] is unknown: did you mean 'all'?"),
    ],
)
def test_what_a_choice_does_not_know_is_refused_before_anything_is_done(override, sentence):
    with pytest.raises(InputError) as mistake:
        check_choices(compose("diagnose", [override]))
    assert sentence in str(mistake.value)


@pytest.mark.parametrize(
    ("command", "overrides", "sentence"),
    [
        ("train", [], "task is missing: give task=…; choose from: "),
        ("train", [TASK, "reward_p=0"], "reward_p=0.0 must lie in (0, 1]"),
        ("train", [TASK, "seed=1"], "did you mean 'seeds'?"),
        ("train", [TASK, "study=lcd"], "'lcd train' takes no study"),
        ("view", [TASK, "split=test"], "split=test is unknown"),
        ("view", [TASK, "seed=-1"], "seed=-1 must be a whole number of at least 0"),
        ("doctor", ["x"], "give key=value"),
    ],
)
def test_mistakes_of_other_commands(command, overrides, sentence):
    with pytest.raises(InputError) as mistake:
        compose(command, overrides)
    assert sentence in str(mistake.value)


def test_seeds_by_number_and_by_name():
    assert seed_list("seeds", 3) == [0, 1, 2]
    assert seed_list("seeds", [7, 3]) == [7, 3]


def test_every_task_of_ours_is_known_by_its_name():
    tasks = [task for name in ("ctgraph", "procgen", "toy") for task in get_benchmark(name).tasks]
    assert set(tasks) <= set(registered("task"))
    for task in tasks:
        cfg = compose("train", [f"task={task}"])
        assert (cfg.task.name, cfg.task.knobs, cfg.benchmark.name) == (task, {}, task.partition("/")[0])


def test_a_task_says_its_benchmark_unless_one_is_given():
    assert compose("train", ["task=procgen/heist", "benchmark=procgen-easy"]).benchmark.name == "procgen-easy"
    assert compose("view", ["procgen/heist"]).benchmark.name == "procgen"
    assert compose("view", ["procgen-easy"]).task.name == compose("view", ["procgen-easy"]).benchmark.name
    assert compose("view", ["task=mine/easy"]).benchmark.name == "toy"


@pytest.mark.parametrize("agent", ["ppo", "ppg"])
def test_procgen_alone_is_the_papers_run(agent):
    cfg = compose("train", ["task=procgen/starpilot", "view=semantic", f"agent={agent}"])
    assert cfg.budget == "paper"
    assert cfg.steps == {"ppo": 200_000_000, "ppg": 100_000_000}[agent]
    assert [cfg.agent[key] for key in ("copies", "rollout", "encoder", "width")] == [256, 256, "impala", 256]
    assert cfg.evaluation.every == cfg.agent["copies"] * cfg.agent["rollout"]
    assert get_benchmark(cfg.benchmark.name).knobs == {"mode": "hard", "num_levels": 500}


def test_a_budget_says_what_an_agents_name_means_and_the_user_has_the_last_word():
    words = ["agent.copies=8", "steps=7", "task=procgen/heist", "agent=ppg", "budget=smoke"]
    cfg = compose("train", words)
    assert (cfg.agent["name"], cfg.agent["encoder"], cfg.agent["copies"], cfg.steps) == ("ppg", "cnn", 8, 7)
    assert compose("train", ["agent=ppg_procgen", "task=procgen/heist", "budget=cpu"]).agent["encoder"] == "impala"
    assert compose("train", ["agent=ppg", TASK, "budget=paper"]).agent["encoder"] == "auto"


@pytest.mark.parametrize("budget", choices("budget"))
def test_every_benchmark_takes_every_budget(budget):
    protocols = set()
    for benchmark in [*choices("benchmark"), "theirs:Worlds"]:
        if benchmark != "custom":
            study = compose("diagnose", [f"benchmark={benchmark}", f"budget={budget}"]).study
            run = compose("train", [f"benchmark={benchmark}", "task=any", f"budget={budget}"])
            steps = budgets.steps_of(study.steps, "ppo", budget, benchmark)
            assert (study.seeds, steps, study.evaluation) == (run.seeds, run.steps, run.evaluation)
            assert 1 <= run.evaluation.every <= run.steps
            protocols.add((run.seeds, run.steps))
    assert len(protocols) > 1 or budget == "smoke"


def test_a_benchmark_may_have_any_name():
    for name in ("mine:Mine", "name", "own_of", "others"):
        assert budgets.default_budget(name, choices("budget")) == "cpu"
        assert budgets.protocol("paper", name, "ppo")["steps"] == 102_400


@pytest.fixture
def study_file(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("seeds: 3\nevaluation: {every: 64}\nbudgets: {smoke: {seeds: 4, tasks: [toy/a]}}\n")
    return f"study={file}"


def test_what_a_user_says_wins_over_their_file_their_budget_a_shipped_file_and_the_benchmarks_budget(study_file):
    def seeds(*words):
        return compose("diagnose", words).study.seeds

    assert seeds("benchmark=procgen") == 3  # the benchmark's own budget
    assert seeds("study=adaptive", "study.source=x") == list(range(1000, 1008))  # a shipped file
    assert seeds("study=adaptive", "study.source=x", "budget=smoke") == 2  # a budget that is named
    assert seeds("budget=paper", study_file) == 3  # a file of theirs
    assert seeds("budget=smoke", study_file) == 4  # what it says of the budget
    assert seeds("study.seeds=9", "budget=smoke", study_file) == 9  # keys, wherever they stand


def test_a_file_leaves_to_the_budget_what_it_does_not_say(study_file):
    study = compose("diagnose", ["budget=smoke", study_file]).study
    assert (study.evaluation.every, study.evaluation.copies, study.tasks) == (64, 8, ["toy/a"])


def test_a_budget_that_a_file_does_not_know_is_refused(tmp_path):
    file = tmp_path / "mine.yaml"
    for text, sentence in (("smok: {}", "did you mean 'smoke'"), ("smoke: {sedes: 3}", "did you mean 'seeds'")):
        file.write_text(f"budgets: {{{text}}}\n")
        with pytest.raises(InputError, match=sentence):
            compose("diagnose", [f"study={file}"])


def test_a_curriculum_stands_for_a_task():
    assert compose("train", ["benchmark=ctgraph", "curriculum=[[a,1],[b,2]]"]).curriculum == [["a", 1], ["b", 2]]
    assert compose("train", ["benchmark=ctgraph", "curriculum=my file (1).yaml"]).curriculum == "my file (1).yaml"
    assert compose("train", [TASK]).curriculum is None


@pytest.mark.parametrize("group", GROUPS)
def test_every_choice_composes(group):
    commands = [command for command in SCHEMAS if group in groups(command)]
    # Every choice under one command, and every command with one choice.
    asked = [(commands[0], choice) for choice in choices(group)]
    asked += [(command, choice) for command in commands[1:] for choice in choices(group)[:1]]
    for command, choice in asked:
        task = [TASK] if "task" in groups(command) and group != "task" else []
        cfg = compose(command, [*task, f"{group}={choice}"])
        part = getattr(cfg, group)
        name = part["name"] if isinstance(part, dict) else getattr(part, "name", part)
        # Several files may have settings of one agent; sweeps lie in a folder.
        plain = choice.rpartition("/")[2] if group == "study" else choice
        varied = choice in SETTINGS or "_mdp_playground" in choice
        assert name == (choice.partition("_")[0] if varied else plain)


OPEN = ("study.grid", "study.steps")
"""Whose keys are knobs and agents."""


@pytest.mark.parametrize("command", SCHEMAS)
def test_files_have_the_keys_of_the_schemas(command):
    """What a file leaves out would get a default that no file shows."""
    free = ("agent", "frontend", "task")
    shown = {key for key in flatten(defaults(command)) if key.split(".")[0] not in free}
    known = {key for key, _ in schema_fields(SCHEMAS[command]) if key.split(".")[0] not in free}
    # A launcher or tracker has keys of its own, which its dataclass declares.
    own = {key for key in shown - known if key.startswith(("launcher.", "tracker."))}
    left, right = ({key for key in keys if not key.startswith(OPEN)} for keys in (shown - own, known))
    assert left == right


@pytest.mark.parametrize("command", ["diagnose", "train", "report", "view", "list"])
def test_every_key_has_a_meaning(command):
    table = key_table(command)
    assert table
    assert [key for key, _, meaning in table if not meaning and not key.startswith(("agent.", "frontend."))] == []
