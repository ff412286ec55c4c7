"""What a file given as study=FILE.yaml may say: plain data, each mistake in one sentence."""

import os

import pytest

from lcd.config.compose import compose
from lcd.envs.errors import InputError


def composed(folder, text):
    file = folder / "mine.yaml"
    file.write_text(text, "utf-8")
    return compose("diagnose", ["benchmark=toy", f"study={file}"])


def test_a_file_says_what_differs_from_the_usual_study(tmp_path):
    study = composed(tmp_path, "\ufeffseeds: 3\nevaluation: {every: 64}\n").study
    assert (study.name, study.seeds, study.evaluation.every) == ("mine", 3, 64)
    assert study.evaluation.copies == compose("diagnose", ["benchmark=toy"]).study.evaluation.copies


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("contrasts: &a [*a]", "nested too deeply"),
        ("agent_params: &a {ppo: *a}", "nested too deeply"),
        ("contrasts: " + "[" * 200 + "]" * 200, "nested too deeply"),
        ("contrasts:\n- &a0 [x]\n" + "".join(f"- &a{i} [{f'*a{i - 1},' * 10}]\n" for i in range(1, 9)), "too many"),
        (f"seeds: [{','.join(map(str, range(9000)))}]", "more than 20,000 letters"),
        ("name: ${oc.env:HOME}", "must not hold"),
        ("agent_params: {ppo: {width: '${oc.env:HOME}'}}", "must not hold"),
        ("threshold: .inf", "no finite number"),
        ("evaluation: 3", "evaluation=3 must be a set of keys: every, copies, episodes"),
        ("evaluation: {evry: 3}", "did you mean 'every'"),
        ("name: {a: 1}", 'study.name={"a": 1} has the wrong type'),
        ("contrasts: {a: b}", 'study.contrasts={"a": "b"} has the wrong type: it must be a list'),
        ("tasks: {a: b}", 'study.tasks={"a": "b"} has the wrong type: it must be a list of names'),
        ("of: [a]", 'study.of=["a"] has the wrong type: it must be a set of keys'),
        ("name: 2020-01-01", "a date"),
        ("1: 2", "no text"),
        ("[1]", "must hold a set of keys"),
    ],
)
def test_what_is_no_study_is_refused(tmp_path, text, sentence):
    with pytest.raises(InputError) as refused:
        composed(tmp_path, text)
    assert sentence in str(refused.value)
    assert len(str(refused.value)) < 450


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(InputError, match="no regular file"):
        compose("diagnose", ["benchmark=toy", f"study={tmp_path / 'pipe.yaml'}"])


def test_nobodys_home_is_no_folder():
    with pytest.raises(InputError, match="nobody on this machine"):
        compose("diagnose", ["benchmark=toy", "study=~nosuchuser/mine.yaml"])


def test_a_number_without_end_is_refused_however_it_is_written():
    with pytest.raises(InputError, match=r"study\.threshold=Infinity must be a number, median"):
        compose("diagnose", ["benchmark=toy", "study.threshold=Infinity"])
    with pytest.raises(InputError, match=r"power=inf must be a finite number"):
        compose("power", ["path=x.csv", "power=Infinity"])


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("study.tasks={a: b}", "a list of names"),
        ("study.knobs=[1]", "a set of keys"),
        ("study.agent_params=[1]", "a set of keys"),
    ],
)
def test_a_list_where_keys_belong_and_the_reverse_are_told_by_what_is_right(said, right):
    with pytest.raises(InputError, match=f"has the wrong type: it must be {right}"):
        compose("diagnose", ["benchmark=toy", said])
