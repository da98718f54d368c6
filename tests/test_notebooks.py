"""Every notebook from end to end, in a tiny setting, through to a browser without network."""

import gzip
import json
import os
import random
import re
from pathlib import Path

import pytest
from pages import visit
from test_own_model import of_docs

from lib.notebook import HEADLINE
from tools.report.__main__ import main
from tools.report.page import kept_summary
from tools.report.parameters import find_notebook, given_parameters
from tools.report.run import make_report
from tools.sweep.plan import Corpora, Report

pytestmark = pytest.mark.usefixtures("forked_kernels")
HOSTILE = ("<script>alert(1)</script>", "<img src=x onerror=alert(2)>")
HOSTILE += ("\u202e\u05e9\u05dc\u05d5\u05dd", "&amp;", "`$x$`")
EMOJI = "😀"  # in every short text: whichever is shown has it
WORDS = {0: "war peace minister border treaty".split(), 1: "profit shares bank market price".split()}
COMMON = "the a of and to in said on for with".split()
LONG = 20_000


def hostile_texts(number: int, seed: int) -> list[dict]:
    """Short news of two classes, whose words a page must not take for its own."""
    draw = random.Random(seed)
    rows = []
    for index in range(number):
        label = index % 2
        words = draw.choices(WORDS[label], k=3) + draw.choices(COMMON, k=9) + [EMOJI, HOSTILE[index % len(HOSTILE)]]
        draw.shuffle(words)
        rows.append({"label": 2 * label, "title": "", "description": f"{seed} {index} {' '.join(words)}"})
    return rows


def hostile_home(folder: Path, longest: int) -> Path:
    """A folder of datasets that holds an `agnews4` of hostile words, one text of it with that many tokens."""
    folder = folder / "agnews4"
    folder.mkdir()
    about = {"name": "agnews4", "title": f"News {HOSTILE[0]}", "citation": HOSTILE[1], "licence": HOSTILE[0]}
    about |= {"task": "classification", "classes": ["World", "Sports", "Business", "Sci/Tech"], "complete": False}
    (folder / "dataset.json").write_text(json.dumps(about))
    long_words = " ".join(random.Random(0).choices(WORDS[0] + WORDS[1] + COMMON, k=longest))
    long = {"label": 0, "title": "", "description": f"{HOSTILE[0]} {long_words}"}
    for split, rows in {"train": hostile_texts(80, 1), "test": [*hostile_texts(24, 2), long]}.items():
        with gzip.open(folder / f"{split}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row | {"text": f"{row['title']} {row['description']}"}) + "\n" for row in rows)
    return folder.parent


def report(monkeypatch, folder: Path, notebook: str, *parameters: str) -> str:
    """The page of a notebook made with the parameters; nothing is written into the project."""
    monkeypatch.setenv("CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv("RESULTS_HOME", str(folder / "results"))
    found = find_notebook(notebook)
    assert make_report(found, given_parameters(found, [parameter.split(" ", 1) for parameter in parameters]), folder)
    (page,) = folder.glob(f"{notebook}-*.html")
    found = {path.name for path in (folder / "cache").glob("[!.]*/") if not path.name.startswith("word2vec-")}
    assert found == planned(page)
    return str(page)


def planned(page: Path) -> set[str]:
    """The cache's names of what a sweep trains before this report, which then has nothing left to train."""
    settings = kept_summary(page)["parameters"]
    report = Report(find_notebook(page.stem.split("-")[0]), settings)
    return set(report.runs(Corpora(report.data_home)))


def opened(chromium, page: str) -> dict:
    """What a reader's browser shows of a page, with the network off: its charts, texts, and whatever went wrong."""
    with visit(chromium, Path(page)) as seen:
        seen.page.evaluate("document.querySelectorAll('details:not(.code)').forEach(one => one.open = true)")
        return {
            "wrong": seen.wrong,
            "charts": seen.page.locator("svg.marks").count(),
            "images": seen.page.locator("img").count(),
            "text": seen.page.locator("body").inner_text(),
            "findings": seen.page.get_by_text("What we find").count(),
        }


def charts_made(page: str) -> int:
    """How many charts the executed notebook holds, and the one at the page's top."""
    work = Path(page).parent / "work" / Path(page).stem
    (executed,) = work.glob("*.ipynb")
    cells = json.loads(executed.read_text())["cells"]
    data = [output.get("data", {}) for cell in cells for output in cell.get("outputs", ())]
    top = [of[HEADLINE] for of in data if HEADLINE in of]
    return sum("application/vnd.vegalite.v5+json" in of for of in data) + sum(
        bool(of["chart"]) and not of["own"] for of in top
    )


def test_correlation_on_hostile_words_and_a_text_of_20_000_tokens(monkeypatch, tmp_path, chromium):
    monkeypatch.setenv("DATA_HOME", str(hostile_home(tmp_path, LONG)))
    page = report(
        *(monkeypatch, tmp_path, "correlation", "dataset agnews4"),  # of several classes
        *("encoders average,conv", "attentions additive", "seeds 0", "vectors random"),
    )
    shown = opened(chromium, page)
    assert shown["wrong"] == [] and shown["images"] == 0
    assert shown["charts"] == charts_made(page) >= 7
    assert "longer than 2,000 tokens" in shown["text"]
    assert re.search(">20,0[0-9]{2}</td>", Path(page).read_text()), "the longest text, in the card"
    assert EMOJI in Path(page).read_text()


def home_of_stories(folder: Path, number: int = 60) -> Path:
    """A folder of datasets that holds a `babi1` whose stories have hostile words."""
    folder = folder / "babi1"
    folder.mkdir()
    (folder / "dataset.json").write_text(json.dumps({"title": f"Stories {HOSTILE[0]}", "citation": HOSTILE[1]}))
    places, records = ("kitchen", "garden", "office", "hallway", "attic", "cellar", "barn"), []
    for index in range(number):
        first, second = places[index % 7], places[index * index % 7]
        facts = [f"Mary {HOSTILE[index % len(HOSTILE)]} {EMOJI} went to the {first}.", f"John went to the {second}."]
        question = {"question": f"Where is {HOSTILE[0]} John?", "answer": second, "supporting": [1]}
        records.append({"context": facts, **question})
    for split, rows in {"train": records, "test": records[:30]}.items():
        with gzip.open(folder / f"{split}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return folder.parent


def test_correlation_on_stories_that_ask_hostile_questions_of_a_sparse_model(monkeypatch, tmp_path, chromium):
    monkeypatch.setenv("DATA_HOME", str(home_of_stories(tmp_path)))
    models = "encoders conv", "attentions dot", "seeds 0", "projection sparsegen:-3"
    page = report(monkeypatch, tmp_path, "correlation", "dataset babi1", *models)
    shown = opened(chromium, page)
    assert shown["wrong"] == [] and shown["images"] == 0
    assert shown["findings"] >= 1 and "is it so?" in shown["text"]
    assert shown["charts"] == charts_made(page) >= 8
    assert "against the words that decide" in shown["text"] and "asked “where is" in shown["text"]
    assert EMOJI in Path(page).read_text()


TINY = ("seeds 0", "lambdas 0.002", "adversary_epochs 1", "vectors random")


def test_adversary_on_hostile_words_and_a_text_beyond_the_adversarys_bound(monkeypatch, tmp_path, chromium):
    monkeypatch.setenv("DATA_HOME", str(hostile_home(tmp_path, 5_100)))
    page = report(monkeypatch, tmp_path, "adversary", "dataset agnews", *TINY)
    shown = opened(chromium, page)
    assert shown["wrong"] == [] and shown["images"] == 0
    assert shown["charts"] == charts_made(page) == 5
    assert "longer than 5,000 tokens" in shown["text"] and "No adversary has converged and moved" in shown["text"]
    assert EMOJI in Path(page).read_text()


def reasoned_texts(number: int, seed: int) -> list[dict]:
    """The same as reviews, their words of one class marked as the reason."""
    rows = []
    for row in hostile_texts(number, seed):
        tokens, label = row["description"].split(), row["label"] // 2
        marked = [[place, place + 1] for place, token in enumerate(tokens) if token in WORDS[label]]
        rows.append({"text": row["description"], "label": label, "rationale": marked})
    return rows


def home_of_reasons(folder: Path) -> Path:
    """A folder of datasets that holds an `eraser_movies` of hostile words."""
    folder = folder / "eraser_movies"
    folder.mkdir()
    about = {"name": "eraser_movies", "title": f"Reviews {HOSTILE[0]}", "classes": ["negative", HOSTILE[0]]}
    (folder / "dataset.json").write_text(json.dumps(about))
    for split, rows in {
        "train": reasoned_texts(80, 1),
        "dev": reasoned_texts(24, 3),
        "test": reasoned_texts(24, 2),
    }.items():
        with gzip.open(folder / f"{split}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return folder.parent


def test_adversary_on_hostile_words_with_reasons(monkeypatch, tmp_path, chromium):
    monkeypatch.setenv("DATA_HOME", str(home_of_reasons(tmp_path)))
    page = report(monkeypatch, tmp_path, "adversary", "dataset eraser_movies", "projection sparsemax", *TINY)
    shown = opened(chromium, page)
    assert shown["wrong"] == [] and shown["charts"] == charts_made(page) == 5
    assert "underlined: the words that decide the label" in shown["text"]
    assert "No text was left out, and every value is defined" in shown["text"]


SHORT = ("seeds 0", "lambdas 0.1", "imitation_epochs 1", "vectors random")


def test_regularization_on_hostile_words_with_reasons(monkeypatch, tmp_path, chromium):
    monkeypatch.setenv("DATA_HOME", str(home_of_reasons(tmp_path)))
    page = report(monkeypatch, tmp_path, "regularization", "dataset eraser_movies", *SHORT)
    shown = opened(chromium, page)
    assert shown["wrong"] == [] and shown["images"] == 0
    assert shown["charts"] == charts_made(page) == 6
    assert "The attention of a regularized model ranks the words that decide the label higher" in shown["text"]
    assert "so splits are compared each with its own" in shown["text"]
    assert "tying with learned embeddings" in shown["text"] and "average precision" in shown["text"]
    assert EMOJI in Path(page).read_text()


def test_regularization_where_no_reason_is_known(monkeypatch, tmp_path, chromium):
    monkeypatch.setenv("DATA_HOME", str(hostile_home(tmp_path, 600)))
    choices = "dataset agnews", "attentions dot", "delta 1", "eta 0.1", "deeper no"
    page = report(monkeypatch, tmp_path, "regularization", *choices, *SHORT)
    shown = opened(chromium, page)
    assert shown["wrong"] == [] and shown["charts"] == charts_made(page) == 6
    assert "agnews does not say which words decide" in shown["text"]


SPARSE = ("seeds 0", "strengths [-1,0,0.5]", "lambdas 0.1", "frozen_lambdas 1", "adversary_epochs 1", "vectors random")


def test_sparsity_on_hostile_words_with_reasons(monkeypatch, tmp_path, chromium):
    monkeypatch.setenv("DATA_HOME", str(home_of_reasons(tmp_path)))
    page = report(monkeypatch, tmp_path, "sparsity", "dataset eraser_movies", *SPARSE)
    shown = opened(chromium, page)
    assert shown["wrong"] == [] and shown["images"] == 0
    assert shown["charts"] == charts_made(page) == 7
    assert "underlined: the words that decide the label" in shown["text"] and "Figure 3: attention" in shown["text"]
    assert EMOJI in Path(page).read_text()


def test_sparsity_with_one_encoder_and_a_long_text(monkeypatch, tmp_path, chromium):
    monkeypatch.setenv("DATA_HOME", str(hostile_home(tmp_path, 2_100)))
    monkeypatch.setenv("KERNEL_CORE", str(random.choice([*os.sched_getaffinity(0)])))
    choices = "dataset agnews", "encoders bilstm", "profile paper"  # with all its parts, on few texts
    imitations = "lambdas 0", "frozen_lambdas 0"  # in table 5 nothing is compared, and no adversary judged
    page = report(monkeypatch, tmp_path, "sparsity", *choices, *SPARSE, *imitations)
    shown = opened(chromium, page)
    assert shown["wrong"] == [] and shown["charts"] == charts_made(page) == 7
    assert "An adversary whose attention alone learns" not in shown["text"] and "entmax:learned" in shown["text"]
    assert "longer than 500 tokens" in shown["text"] and "longer than 2,000 tokens" in shown["text"]


def test_ground_truth_on_hostile_words_that_people_marked(monkeypatch, tmp_path, chromium):
    monkeypatch.setenv("DATA_HOME", str(home_of_reasons(tmp_path)))
    choices = "dataset eraser_movies", "encoders average", "seeds 0", "vectors random"
    page = report(monkeypatch, tmp_path, "ground_truth", *choices)
    shown = opened(chromium, page)
    assert shown["wrong"] == [] and shown["images"] == 0 and shown["charts"] == charts_made(page)
    assert "The reasons of eraser_movies are not known: run this notebook on planted" in shown["text"]
    assert "integrated gradients, from unknown" in shown["text"] and "without the shortcut" in shown["text"]
    assert EMOJI in Path(page).read_text()


OF_TEXTS = ("seeds 0", "vectors word2vec", "encoders flan-conv,han-rnn,han-noenc")


def test_erasure_on_hostile_words_of_two_topics(monkeypatch, tmp_path, chromium):
    monkeypatch.setenv("DATA_HOME", str(hostile_home(tmp_path, 3_000)))
    page = report(monkeypatch, tmp_path, "erasure", "dataset agnews4", "test_texts 25", *OF_TEXTS)
    shown = opened(chromium, page)
    assert shown["wrong"] == [] and shown["images"] == 0
    assert shown["charts"] == charts_made(page) >= 3
    assert "test_texts: 25 of the texts of test were drawn at random" in shown["text"]
    assert EMOJI in Path(page).read_text()


def test_erasure_on_words_alone(monkeypatch, tmp_path, chromium):
    page = report(monkeypatch, tmp_path, "erasure", "dataset planted", "encoders flan-noenc")
    shown = opened(chromium, page)
    assert shown["wrong"] == [] and shown["charts"] == charts_made(page) == 4
    assert "planted, here" in shown["text"] and shown["findings"] >= 1


def own_model(folder: Path, token_logits: str) -> str:
    """The module of docs/own-model.md in a file, untrained."""
    code = re.sub(r"model.load_state_dict.*", "torch.manual_seed(0)", of_docs(0))
    code = re.sub(r"(def token_logits.*\n\s+return ).*", rf"\1{token_logits}", code)
    (folder / "mine.py").write_text(code)
    return f"model {folder / 'mine.py'}:load"


def test_correlation_of_ones_own_model_whose_read_out_is_not_affine(monkeypatch, tmp_path, chromium):
    monkeypatch.setenv("DATA_HOME", str(hostile_home(tmp_path, 60)))
    page = report(monkeypatch, tmp_path, "correlation", "dataset agnews", own_model(tmp_path, "None"))
    shown = opened(chromium, page)
    assert shown["wrong"] == [] and shown["charts"] == charts_made(page) >= 6
    assert "search (nats)" in shown["text"]
    assert "optimum (nats)" not in shown["text"]
    assert "mine + attention" in shown["text"], "claims are about it too"
    assert kept_summary(Path(page))["title"] == "The tests of “Attention is not Explanation” on mine.py"
    assert "The tests of “Attention is not Explanation” on mine.py" in shown["text"]
    assert "May its attention be shown?" in shown["text"]


@pytest.mark.parametrize(("notebook", "dataset"), [("correlation", "agnews"), ("erasure", "agnews4")])
def test_nothing_is_concluded_from_a_model_that_gives_all_texts_the_same_answer(
    monkeypatch, tmp_path, chromium, notebook, dataset
):
    monkeypatch.setenv("DATA_HOME", str(hostile_home(tmp_path, 60)))
    terms = "output.hidden @ self.decoder.weight.T, self.decoder.bias"
    file = own_model(tmp_path, terms).removeprefix("model ").removesuffix(":load")
    same = Path(file).read_text().replace("torch.manual_seed(0)", "torch.nn.init.zeros_(model.decoder.weight)")
    Path(file).write_text(same)
    page = report(monkeypatch, tmp_path, notebook, f"model {file}", f"dataset {dataset}")
    shown = opened(chromium, page)
    assert shown["wrong"] == [] and shown["charts"] == charts_made(page) >= 1
    found = kept_summary(Path(page))["findings"]
    assert not any(line.endswith((", yes", ", no", ", none")) for line in found), "nothing is concluded from it"
    assert notebook == "erasure" or "Nothing to draw: 'kendall_tau_attention" in shown["text"]


def test_erasure_of_ones_own_model(monkeypatch, tmp_path, chromium):
    monkeypatch.setenv("DATA_HOME", str(hostile_home(tmp_path, 60)))
    terms = "output.hidden @ self.decoder.weight.T, self.decoder.bias"
    page = report(monkeypatch, tmp_path, "erasure", "dataset agnews4", own_model(tmp_path, terms))
    shown = opened(chromium, page)
    assert shown["wrong"] == [] and shown["charts"] == charts_made(page) >= 1
    assert "last epoch" not in shown["text"]
    assert "first sooner" in shown["text"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (["dataset sst", "data_home /nowhere"], "sst"),
        (["vectors /nowhere.npz"], "nowhere.npz"),
        (["projection sparsegen:2"], "allowed: below 1"),
        (["device tpu"], "auto, cpu, cuda"),
    ],
)
def test_a_wrong_choice_ends_in_one_sentence(monkeypatch, tmp_path, capsys, parameters, message):
    monkeypatch.setenv("CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("RESULTS_HOME", str(tmp_path / "results"))
    monkeypatch.delenv("DATA_HOME", raising=False)
    arguments = [word for parameter in parameters for word in ("-p", *parameter.split(" ", 1))]
    assert main(["correlation", *arguments, "--output", str(tmp_path)]) in (1, 2)
    printed = "".join(capsys.readouterr())
    assert message in printed and "Traceback" not in printed
    assert not list(tmp_path.glob("correlation-*.html"))
