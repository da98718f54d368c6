"""Kept results: a row for each run and quantity, several runs in one file, and which of them are stale."""

from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pandas as pd
import planned
import pytest
from test_claims import instances

import papers
from lib.analysis import classification, summarise
from lib.analysis.summarising import by_seed_rows, over_seeds
from papers import results
from papers.claims import Claim, read_evidence
from tools.summary import studies
from tools.summary.values import partners

TAU = "kendall_tau_attention_vs_gradient_times_input"
CLAIM = Claim("jain2019", "it rises", "It rises", "section 4", "direction", 0.05, "tau-b", "any", "0", "it falls")


def trained(notebook="correlation", profile="paper", corpus="0123456789abcdef", **chosen) -> list[SimpleNamespace]:
    """What a notebook trained, without models."""
    texts = SimpleNamespace(train=range(9), dev=range(2), test=range(60), checksum=corpus)
    vectors = SimpleNamespace(source="/home/me/v.npz")
    runs = planned.runs(notebook, "planted", profile, **{"device": "cpu"} | chosen)
    return [SimpleNamespace(run=run, vectors=vectors, corpus=texts) for run in runs]


def keep(folder: Path, seeds: dict[int, float], encoder="bilstm", commit="first", **changed) -> str:
    """Keeps a run of one encoder whose tau is `seeds`, and the evidence on it; `changed`: of what was trained."""
    frame = instances({encoder: 0.0}, seeds=max(seeds) + 1)
    frame = frame[frame["seed"].isin(seeds)]
    frame[TAU] = frame["seed"].map(seeds) + frame.groupby("seed")[TAU].transform(lambda some: some - some.mean())
    summary = summarise(frame, [TAU]).astype(object)  # as beside an empty table
    evidence = CLAIM.evidence(encoder, seeds, se=0.01, n=60)
    corpus = {name: changed.pop(name) for name in ("corpus",) if name in changed}
    given = {"profile": "paper", "device": "cpu", "encoders": [encoder], "seeds": list(seeds)} | changed
    settings = papers.PAPERS["correlation"].settings(**given)
    with patch.dict("os.environ", RESULTS_HOME=str(folder)):
        return results.keep("correlation", settings, trained(**given, **corpus), summary, evidence, commit)


def kept(folder: Path, ending="") -> pd.DataFrame:
    return pd.read_csv(folder / f"correlation-planted{ending}.csv", dtype=str, keep_default_na=False)


def test_the_rows_of_single_seeds_put_together_are_what_was_summarised():
    frame = instances({"bilstm": 0.3, "average": 0.6})
    rows = pd.concat([classification(frame), summarise(frame, [TAU])], ignore_index=True)
    other = pd.DataFrame([{"quantity": "a difference", "difference": 0.1, "of_seeds": {0: 0.1}}])
    kept = by_seed_rows(pd.concat([rows, other], ignore_index=True))
    assert len(kept) == 4 * len(rows) + 1 and kept["per"].eq("seed").sum() == 4 * len(rows)
    back = over_seeds(kept)
    assert back.iloc[-1]["difference"] == 0.1
    numbers = ["value", "low", "high", "sd_seeds", "sd_instances", "n", "seeds", "se_texts"]
    keys = ["encoder", "quantity", "unit"]
    assert back.iloc[:-1][keys].values.tolist() == rows[keys].values.tolist()
    np.testing.assert_allclose(back.iloc[:-1][numbers].astype(float), rows[numbers].astype(float), rtol=1e-12)


def test_a_seed_replaces_itself_and_another_part_stays(tmp_path):
    assert keep(tmp_path, {0: 0.1, 1: 0.2, 2: 0.3}).startswith("kept in")
    keep(tmp_path, {0: 0.5, 1: 0.5}, "average")
    keep(tmp_path, {2: 0.6, 3: 0.4}, commit="second")
    (study,) = studies.kept(tmp_path)
    tau = study.values.set_index("encoder")
    assert (
        tau.loc["bilstm", "value"] == pytest.approx(np.mean([0.1, 0.2, 0.6, 0.4])) and tau.loc["bilstm", "seeds"] == 4
    )
    assert tau.loc["bilstm", "sd_seeds"] == pytest.approx(np.std([0.1, 0.2, 0.6, 0.4], ddof=1))
    assert tau.loc["average", "value"] == pytest.approx(0.5) and tau.loc["average", "seeds"] == 2
    evidence = read_evidence((tmp_path / "correlation-planted-evidence.csv").read_text()).set_index(["model", "seed"])
    of_seeds = evidence.loc["bilstm", "value"].sort_index()
    assert of_seeds.to_dict() == {0: 0.1, 1: 0.2, 2: 0.6, 3: 0.4}
    assert evidence.loc["bilstm", "commit"].sort_index().tolist() == ["first", "first", "second", "second"]
    assert study.seeds == ("0", "1", "2", "3") and study.commit == "second, first" and not study.stale
    keep(tmp_path, dict.fromkeys(range(4), 0.5))
    again = kept(tmp_path, "-evidence").groupby("model")["looked"].unique()
    assert again["bilstm"].tolist() == ["3 4"] and again["average"].tolist() == [""], (
        "run anew, it was still seen twice"
    )


def test_differences_of_two_runs_are_put_together_too():
    parts = [{"quantity": "less", "unit": "fraction", "value": value, "difference": value, "p": value, "se_texts": 0.01,
              "of_seeds": {seed: value}, "n": 9} for seed, value in ((0, 0.1), (1, 0.3))]  # fmt: skip
    (row,) = over_seeds(pd.concat([by_seed_rows(pd.DataFrame([part])) for part in parts])).to_dict("records")
    assert row["value"] == pytest.approx(0.2) and row["seeds"] == 2 and pd.isna(row["difference"])


def test_kept_again_a_run_changes_nothing(tmp_path):
    keep(tmp_path, {0: 0.1, 1: 0.2})
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}
    keep(tmp_path, {0: 0.1, 1: 0.2})
    assert before == {path.name: path.read_text() for path in tmp_path.iterdir()}


def test_numbers_are_kept_with_six_digits(tmp_path):
    keep(tmp_path, {0: 1 / 3, 1: 2 / 3})
    assert kept(tmp_path)["value"].tolist() == kept(tmp_path, "-evidence")["value"].tolist() == ["0.333333", "0.666667"]


def test_tables_of_other_texts_are_replaced_whole(tmp_path):
    (tmp_path / "correlation-planted.csv").write_text("quantity,value\nf1,0.5\n")
    keep(tmp_path, {0: 0.1, 1: 0.2})
    assert kept(tmp_path)["quantity"].eq(TAU).all()
    keep(tmp_path, {2: 0.3}, "average", corpus="other")
    assert kept(tmp_path)["encoder"].tolist() == kept(tmp_path, "-evidence")["model"].tolist() == ["average"]


def test_evidence_without_a_value_goes_where_there_is_some():
    def text(of_seeds: dict) -> str:
        return CLAIM.evidence("one", of_seeds, excluded="" if of_seeds else "uniform").assign(corpus="a").to_csv()

    keys = results.KEYS["evidence"]
    for old, new in (({}, {0: 0.1}), ({0: 0.1}, {})):
        assert read_evidence(results.merged(text(old), text(new), keys))["seed"].tolist() == [0]
    assert read_evidence(results.merged(text({}), text({}), keys))["seed"].tolist() == [-1]


def test_each_row_says_where_it_comes_from(tmp_path, monkeypatch):
    monkeypatch.setenv("RESULTS_HOME", str(tmp_path))
    given = {"seeds": [0, 4], "adversary_epochs": 80}
    settings = papers.PAPERS["adversary"].settings(profile="paper", device="cpu", **given)
    values, evidence = pd.DataFrame({"quantity": ["f1"], "value": [1 / 3]}), CLAIM.evidence("a", {0: 0.1})
    results.keep("adversary", settings, trained("adversary", **given), values, evidence, "abc")
    for ending in ("", "-evidence"):
        row = pd.read_csv(tmp_path / f"adversary-planted{ending}.csv", dtype=str, keep_default_na=False).iloc[0]
        assert row[list(results.ABOUT)].to_dict() == {
            "commit": "abc", "code": results.training_code(results.CODE_OF["guide_instance_adversary"]),
            "profile": "paper", "chosen": "adversary_epochs 80", "device": "cpu", "vectors": "v.npz",
            "corpus": "0123456789ab", "run_seeds": "0 1 2 3 4 5 6 7 8", "adversary_epochs": "80", "train_texts": "9",
            "dev_texts": "2", "test_texts": "60",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("/home/me/v.npz", "v.npz"),
        (
            "random numbers, N(0, 1), seed 3 (176 of 503 words (35.0%) from /a/v.npz are too few)",
            "random numbers, N(0, 1)",
        ),
        ("word2vec, learned from train and dev, seed 3", "word2vec, learned from train and dev"),
    ],
)
def test_vectors_are_named_without_a_folder_or_a_seed(source, words):
    runs = trained(encoders=["average"], seeds=[0])
    runs[0].vectors = SimpleNamespace(source=source)
    assert results.provenance_of(papers.PAPERS["correlation"].settings(), runs)["vectors"] == words


def test_what_other_training_code_made_is_stale(tmp_path, monkeypatch):
    keep(tmp_path, {0: 0.1, 1: 0.2, 2: 0.3})
    assert not results.is_stale(kept(tmp_path)).any()
    monkeypatch.setattr(results.cache, "code_fingerprint", lambda module: "of other code")
    assert results.is_stale(kept(tmp_path)).all() and studies.kept(tmp_path)[0].stale
    keep(tmp_path, {2: 0.3})
    rows = kept(tmp_path)
    assert dict(zip(rows["seed"], results.is_stale(rows), strict=True)) == {"2": False, "0": True, "1": True}
    assert results.is_stale(pd.DataFrame({"value": [1.0]})).all(), "a row that does not say what made it"


@pytest.mark.parametrize(
    ("why", "changed"),
    [("the profile is 'quick'", {"profile": "quick"}), ("projection made it another", {"projection": "sparsemax"})],
)
def test_what_is_not_kept_is_left_to_the_report_alone(tmp_path, why, changed):
    answer = keep(tmp_path, {0: 0.1, 1: 0.2}, **changed)
    assert answer.startswith("not kept") and why in answer and not list(tmp_path.iterdir())
    assert answer.left["dataset"] == "planted" and len(read_evidence(answer.left["evidence"])) == 2


@pytest.mark.parametrize(
    ("notebook", "altered"),
    [
        ("adversary", {"over_seeds": "max"}),
        ("erasure", {"common_support": True}),
        ("regularization", {"frozen": ["mlm"]}),
        ("ground_truth", {"strength": 0.5}),
    ],
)
def test_another_experiment_than_the_papers_is_not_kept(notebook, altered):
    of = papers.PAPERS[notebook].settings
    assert not results.not_kept(of(profile="paper", seeds=[0, 3]))
    assert results.not_kept(of(profile="paper", **altered)).startswith(next(iter(altered)))


def test_the_partners_of_published_values_are_of_a_studys_models_alone():
    """Not of the same models with shorter word vectors, which have the same names."""
    (one,) = [
        study for study in studies.kept(results.FOLDER) if (study.notebook, study.dataset) == ("correlation", "sst")
    ]
    shorter = one.values[one.values["quantity"].str.startswith("kendall_tau")].assign(vector_scale=0.1)
    both = replace(one, values=pd.concat([shorter, one.values]))
    pd.testing.assert_frame_equal(partners(both), partners(one))


def test_a_trend_of_several_seeds_is_not_replaced_by_one_of_fewer():
    def table(seeds: str, tau: float, code: str = "a", quantity: str = "entropy", epochs: str = "") -> str:
        row = {"quantity": quantity, "seed": "", "per": "", "tau": tau, "run_seeds": seeds, "code": code}
        row["adversary_epochs"] = epochs
        alone = row | {"seed": "0", "per": "seed", "tau": ""}
        return pd.DataFrame([row, alone]).assign(corpus="c").to_csv(index=False)

    def kept(old: str, new: str) -> list[float]:
        rows = pd.read_csv(StringIO(results.merged(old, new, results.KEYS["values"])))
        assert len(rows) == 2
        return rows["tau"].dropna().tolist()

    assert kept(table("0 1 2", 0.3), table("0", 0.1)) == [0.3]
    assert kept(table("0", 0.1), table("0 1 2", 0.3)) == [0.3] == kept(table("0 1", 0.1), table("1 2", 0.3))
    assert kept(table("0 1 2", 0.3, code="old"), table("0", 0.1)) == [0.1], "of other code"

    short, long = (table(seeds, tau, "a", "price", n) for seeds, tau, n in (("0 1 2", 0.1, "12"), ("0 1", 0.3, "300")))
    assert kept(short, long) == kept(long, short) == [0.3], "of adversaries that were trained longer"
    short, long = (text.replace("price", "entropy") for text in (short, long))
    assert kept(short, long) == kept(long, short) == [0.1], "of no adversary"

    def of_points(*numbers: int) -> list[str]:
        return [
            table("0 1 2", 0.1 * n).replace("corpus", "points,corpus").replace(",c\n", f",{n},c\n") for n in numbers
        ]

    assert kept(*of_points(6, 1)) == kept(*of_points(1, 6)) == [pytest.approx(0.6)], "of the longer dial"
