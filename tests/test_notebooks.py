"""Every notebook from end to end, in a tiny setting, through to a browser without network."""

import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import small
import test_huggingface as huggingface
from pages import visit
from test_own_model import of_docs

from lib.datasets.pretrained import library
from lib.notebook import HEADLINE
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


def write(home: Path, name: str, about: dict, **splits: list[dict]) -> Path:
    """The home of a dataset with a hostile title."""
    small.dataset(home, name, about | {"title": f"T {HOSTILE[0]}", "citation": HOSTILE[1]}, **splits)
    return home


def texts(number: int, seed: int, longest: int = 0) -> list[dict]:
    """Short texts of two classes whose words a page must not take for its own, those of a class marked as the reason.

    The last of them has `longest` common words more.
    """
    draw, rows = random.Random(seed), []
    for index in range(number):
        words = draw.choices(WORDS[index % 2], k=3) + draw.choices(COMMON, k=9) + [EMOJI, HOSTILE[index % len(HOSTILE)]]
        draw.shuffle(words)
        words += draw.choices(WORDS[0] + WORDS[1] + COMMON, k=longest if index == number - 1 else 0)
        marked = [[place, place + 1] for place, word in enumerate(words) if word in WORDS[index % 2]]
        rows.append({"text": " ".join(words), "label": index % 2, "rationale": marked, "id": f"{seed} {index}"})
    return rows


def news(folder: Path, longest: int = 60) -> Path:
    """An `agnews4` of hostile words, without marks."""

    def rows(*given: int) -> list[dict]:
        found = [one | {"label": 2 * one["label"], "description": one["text"]} for one in texts(*given)]
        return [{name: value for name, value in one.items() if name != "rationale"} for one in found]

    about = {"classes": ["World", "Sports", "Business", "Sci/Tech"], "licence": HOSTILE[0]}
    return write(folder, "agnews4", about, train=rows(80, 1), test=rows(25, 2, longest))


def reasons(folder: Path, longest: int = 0) -> Path:
    """An `eraser_movies` of hostile words, and a hostile class."""
    splits = {"train": texts(80, 1), "dev": texts(24, 3), "test": texts(25, 2, longest)}
    return write(folder, "eraser_movies", {"classes": ["negative", HOSTILE[0]]}, **splits)


def stories(folder: Path) -> Path:
    """A `babi1` whose stories have hostile words."""
    places, records = ("kitchen", "garden", "office", "hallway", "attic", "cellar", "barn"), []
    for index in range(60):
        first, second = places[index % 7], places[index * index % 7]
        facts = [f"Mary {HOSTILE[index % len(HOSTILE)]} {EMOJI} went to the {first}.", f"John went to the {second}."]
        question = {"question": f"Where is {HOSTILE[0]} John?", "answer": second, "supporting": [1]}
        records.append({"context": facts, **question})
    return write(folder, "babi1", {}, train=records, test=records[:30])


def report(monkeypatch, folder: Path, notebook: str, *parameters: str) -> Path:
    """The page of a notebook made with the parameters; nothing is written into the project."""
    monkeypatch.setenv("CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv("RESULTS_HOME", str(folder / "results"))
    found = find_notebook(notebook)
    assert make_report(found, given_parameters(found, [parameter.split(" ", 1) for parameter in parameters]), folder)
    (page,) = folder.glob(f"{notebook}-*.html")
    trained = {path.name for path in (folder / "cache").glob("[!.]*/") if not path.name.startswith("word2vec-")}
    planned = Report(found, kept_summary(page)["parameters"])
    names = set(planned.runs(Corpora(planned.settings["data_home"])))
    assert names <= trained if notebook == "regularization" else names == trained, "what a sweep trains before it"
    return page


def opened(chromium, page: Path) -> str:
    """The text of a page in a browser with the network off: nothing went wrong, and all charts are drawn."""
    (executed,) = (page.parent / "work" / page.stem).glob("*.ipynb")
    cells = json.loads(executed.read_text())["cells"]
    data = [output.get("data", {}) for cell in cells for output in cell.get("outputs", ())]
    charts = sum("application/vnd.vegalite.v5+json" in of for of in data)
    charts += sum(bool(of[HEADLINE]["chart"]) and not of[HEADLINE]["own"] for of in data if HEADLINE in of)
    with visit(chromium, page) as seen:
        seen.page.evaluate("document.querySelectorAll('details:not(.code)').forEach(one => one.open = true)")
        assert seen.wrong == [] and seen.page.locator("main img").count() == 0
        assert seen.page.locator("svg.marks").count() == charts
        return seen.page.locator("body").inner_text()


def with_bert(folder: Path) -> Path:
    """A home with a pretrained model too, named ./bert."""
    made = huggingface.tiny(library(), "Bert", "Model", vocab_size=len(huggingface.SUBWORDS) + 1).float()
    huggingface.saved(folder / "bert", made, huggingface.tokenizer_of(library(), EMOJI))
    return reasons(folder)


TINY = ("seeds 0", "vectors random", "adversary_epochs 1")
# notebook, the folder of datasets, its parameters, and what its page says
CASES: list[tuple[str, Callable[[Path], Path], tuple[str, ...], tuple[str, ...]]] = [
    (
        "correlation",
        lambda folder: news(folder, 2_100),
        ("dataset agnews", "encoders bilstm,average", "attentions additive", "seeds 0"),
        ("longer than 2,000 tokens", "What we find"),
    ),
    (
        "correlation",
        stories,
        ("dataset babi1", "encoders conv", "attentions dot", "seeds 0", "projection sparsegen:-3"),
        ("is it so?", "average precision", "asked “where is", "What we find"),
    ),
    (
        "adversary",
        lambda folder: reasons(folder, 5_100),
        ("dataset eraser_movies", "projection sparsemax", "lambdas 0.002", *TINY),
        ("longer than 5,000 tokens", "underlined: the words that decide the label", "What we find"),
    ),
    (
        "adversary",
        news,
        ("dataset agnews", "adversaries no", "seeds 0", "vectors random"),
        ("Left out with the trained adversaries", "no model was trained to attend elsewhere", "What we find"),
    ),
    (
        "regularization",
        reasons,
        ("dataset eraser_movies", "seeds 0", "lambdas 0.1", "imitation_epochs 1", "vectors random"),
        ("so splits are compared each with its own", "average precision"),
    ),
    (
        "regularization",
        with_bert,
        ("dataset eraser_movies", "seeds 0", "lambdas 0.1", "imitation_epochs 1", "encoder ./bert"),
        ("average precision",),
    ),
    (
        "sparsity",
        with_bert,
        ("dataset eraser_movies", "seeds 0", "adversary_epochs 1", "encoders ./bert"),
        ("What we find",),
    ),
    (
        "sparsity",
        lambda folder: reasons(folder, 2_100),
        (
            *("dataset eraser_movies", "encoders bilstm", "profile paper", "strengths [-1,0,0.5]"),
            *("lambdas 0.1", "frozen_lambdas 1", *TINY),
        ),
        ("longer than 2,000 tokens", "underlined: the words that decide the label", "Figure 3: attention"),
    ),
    (
        "erasure",
        lambda folder: news(folder, 3_000),
        ("dataset agnews4", "test_texts 24", "seeds 0", "vectors word2vec", "encoders flan-conv,han-rnn,han-noenc"),
        ("test_texts: 24 of the texts of test were drawn", "What we find"),
    ),
    (
        "ground_truth",
        reasons,
        ("dataset eraser_movies", "encoders average", "seeds 0,1", "vectors random"),
        ("The reasons of eraser_movies are not known: run this notebook on planted", "There is no shortcut"),
    ),
]


@pytest.mark.parametrize(("notebook", "home", "parameters", "said"), CASES, ids=lambda value: str(value)[:16])
def test_a_notebook_on_hostile_words(monkeypatch, tmp_path, chromium, notebook, home, parameters, said):
    """Also where a process has one core."""
    monkeypatch.setenv("DATA_HOME", str(home(tmp_path)))
    if "profile paper" in parameters:
        monkeypatch.setenv("KERNEL_CORE", str(random.choice([*os.sched_getaffinity(0)])))
    page = report(monkeypatch, tmp_path, notebook, *parameters)
    text = opened(chromium, page)
    assert [words for words in said if words not in text] == [] and EMOJI in page.read_text()


@pytest.mark.parametrize(
    ("notebook", "dataset", "decoder", "token_logits"),
    [
        ("correlation", "agnews", "", ""),  # of Hugging Face
        ("erasure", "agnews4", "torch.nn.init.zeros_(model.decoder.weight)", r"\2"),  # all texts have the same answer
        ("ground_truth", "agnews", "", r"\2"),
    ],
)
def test_ones_own_model(monkeypatch, transformers, tmp_path, chromium, notebook, dataset, decoder, token_logits):
    """The module of docs/own-model.md in a file, or a Hugging Face folder, untrained."""
    monkeypatch.setenv("DATA_HOME", str(news(tmp_path)))
    code = re.sub(r"model.load_state_dict.*", decoder or "torch.manual_seed(0)", of_docs(1))
    code = re.sub(r"(def token_logits.*\n\s+return )(.*)", rf"\1{token_logits}", code)
    (tmp_path / "mine.py").write_text(code)
    model, named = f"{tmp_path / 'mine.py'}:load", "mine.py"
    if notebook == "correlation":
        made = huggingface.tiny(transformers, num_labels=2).float()
        model, named = str(huggingface.saved(tmp_path / "mine", made, huggingface.tokenizer_of(transformers))), "mine"
    page = report(monkeypatch, tmp_path, notebook, f"dataset {dataset}", f"model {model}")
    text, lines = opened(chromium, page), kept_summary(page)["findings"]
    assert "last epoch" not in text and ("What differs from the paper" in text) == (notebook == "ground_truth")
    assert "at most 300 texts are measured" in text
    assert kept_summary(page)["title"].startswith("The tests of “") and f"on {named}" in text
    if notebook == "ground_truth":
        assert "\npair\t" in text and "\nNo model follows a shortcut.\n" in text
    elif decoder:
        assert not any(line.endswith((", yes", ", no", ", none")) for line in lines), "nothing is concluded from it"
    else:
        assert "mean of all layers" in text and "comprehensiveness: 0" in text and "hyperparameter" not in text
        assert "search (nats)" in text and "optimum (nats)" not in text and "May its attention be shown?" in text
