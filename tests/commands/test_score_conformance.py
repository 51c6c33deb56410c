"""Our scorer against lm-evaluation-harness: the real model, TruthfulQA, the six-shot prompt.

Needs the extra ``smollm``, lm-eval, and the folder CONCEPTNB_DATA with mc_task.json and
qa_preface.txt. lm-eval runs its own task: prompt, tokens, passes and metrics are all its own.
"""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from conceptnb.commands.cli import main
from conceptnb.steering.language_models import SMOLLM2, find_language_model

COUNT = 3
DATA = Path(os.environ.get("CONCEPTNB_DATA", "."))


def their_task(folder, rows):
    """Write lm-eval's own truthfulqa task, with a local file in place of the download."""
    lm_eval = pytest.importorskip("lm_eval")
    source = Path(lm_eval.__file__).parent / "tasks" / "truthfulqa"
    (folder / "data.json").write_text(json.dumps(rows))
    local = "dataset_path: json\ndataset_kwargs:\n  data_files:\n    validation: "
    one = (source / "truthfulqa_mc1.yaml").read_text()
    one = one.replace("tag:\n  - truthfulqa\n", "").replace("dataset_name: multiple_choice\n", "")
    one = one.replace("dataset_path: truthfulqa/truthful_qa", f"{local}{folder / 'data.json'}")
    two = (source / "truthfulqa_mc2.yaml").read_text()
    for name, text in (("mc1", one), ("mc2", two)):
        (folder / f"local_{name}.yaml").write_text(text.replace("truthfulqa_mc", "local_mc"))
    shutil.copy(source / "utils.py", folder)


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "mc_task.json").is_file(), reason="CONCEPTNB_DATA has no task")
def test_log_probabilities_and_metrics_are_those_of_lm_eval(tmp_path, monkeypatch):
    pytest.importorskip("lm_eval")
    try:
        folder = find_language_model(SMOLLM2)
    except ImportError as error:
        pytest.skip(str(error))
    from lm_eval import simple_evaluate  # noqa: PLC0415
    from lm_eval.models.huggingface import HFLM  # noqa: PLC0415
    from lm_eval.tasks import TaskManager  # noqa: PLC0415

    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    questions = json.loads((DATA / "mc_task.json").read_text())[:COUNT]
    (tmp_path / "task.json").write_text(json.dumps(questions))
    keys = ("mc1_targets", "mc2_targets")
    forms = [
        {k: {"choices": list(q[k]), "labels": list(q[k].values())} for k in keys} for q in questions
    ]
    rows = [{"question": q["question"]} | f for q, f in zip(questions, forms, strict=True)]
    their_task(tmp_path, rows)

    words = ["score", "--model", SMOLLM2, "--data", str(tmp_path / "task.json")]
    out = tmp_path / "ours.json"
    assert main([*words, "--prompt", "lm-eval", "--out", str(out)]) == 0
    ours = json.loads(out.read_text())

    results = simple_evaluate(
        model=HFLM(pretrained=folder, device="cpu", dtype="float32", batch_size=1),
        tasks=["local_mc1", "local_mc2"],
        task_manager=TaskManager(include_path=str(tmp_path), include_defaults=False),
        bootstrap_iters=0,
    )
    for task, name in (("local_mc1", "mc1"), ("local_mc2", "mc2")):
        samples = {s["doc"]["question"]: s for s in results["samples"][task]}
        for entry in ours["questions"]:
            sample = samples[entry["question"]]
            choices = sample["doc"][f"{name}_targets"]["choices"]
            theirs = {c: r[0][0] for c, r in zip(choices, sample["resps"], strict=True)}
            assert set(theirs) == set(entry[f"{name}_choices"])
            expected = [theirs[choice] for choice in entry[f"{name}_choices"]]
            np.testing.assert_allclose(entry[f"{name}_logprobs"], expected, atol=1e-4)
    for name in ("mc1", "mc2"):
        theirs = results["results"][f"local_{name}"]["acc,none"]
        assert ours[name] == pytest.approx(theirs, abs=1e-5)
