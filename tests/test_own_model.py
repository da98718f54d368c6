"""A model of one's own: every measure on modules with the interface alone, its check, files, docs."""

import ast
import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from small import Foreign, NotAffine, batch, model, shortened_by_hand
from torch import nn

import papers
from lib import importance, interventions
from lib.analysis import attention_weights, correlate, information, measure, measure_all, summarise
from lib.analysis.adversaries import has_optimum
from lib.analysis.erasure import add_flips
from lib.datasets import load
from lib.importance.rankings import RANKINGS
from lib.importance.state_gradients import of_inputs_to_states, state_gradients
from lib.metrics import probabilities, total_variation
from lib.models import ModelOutput, interface
from lib.models.check_interface import InterfaceError, check_interface
from lib.projections import softmax
from lib.training import Run
from lib.training.own_model import ModelError, own_model
from lib.training.trained import load_corpus
from papers import results
from tools.report import parameters, run
from tools.report.parameters import Refused, report_name

PROJECT = Path(__file__).resolve().parents[1]
LENGTHS = (5, 1, 2, 7, 4)


class Pooled(nn.Module):
    """A GRU, the largest weighted state in each feature, and two layers: nothing of it is ours, nor affine."""

    def __init__(self, words=40, classes=2):
        super().__init__()
        self.table, self.gru = nn.Embedding(words, 6), nn.GRU(6, 8, batch_first=True)
        self.score, self.inner, self.outer = nn.Linear(8, 1), nn.Linear(8, 8), nn.Linear(8, classes)

    def forward(self, given, attention=None):
        return Pooled.from_embeddings(self, self.table(given.tokens), given, attention)

    def from_embeddings(self, embeddings, given, attention=None):
        if torch.is_grad_enabled() and not embeddings.requires_grad:
            embeddings.requires_grad_()
        hidden = self.gru(embeddings)[0]
        scores = 5 * self.score(hidden).squeeze(-1)
        weights = softmax(scores, given.mask) if attention is None else attention
        return ModelOutput(self.pooled(weights, hidden), scores, weights, given.mask, hidden, embeddings)

    def pooled(self, weights, hidden):
        return 5 * self.outer((8 * self.inner((weights[..., None] * hidden).amax(dim=-2))).tanh())

    def read_out(self, output, attention):
        return self.pooled(attention, output.hidden if attention.dim() == 2 else output.hidden[:, None])

    def token_logits(self, output):
        return None


def pooled(kind: type[Pooled] = Pooled) -> Pooled:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return kind().double().eval()


def of_importance(tested, given) -> dict[str, torch.Tensor]:
    found = {"loo": importance.leave_one_out(tested, given)}
    found["loo hidden"] = importance.leave_one_out(tested, given, "hidden")
    for through in (True, False):
        found[f"times {through}"] = importance.gradient_times_input(tested, given, through)
        for of in ("input", "hidden"):
            found[f"gradient {through} {of}"] = importance.gradient(tested, given, through, of)
    return found | {"states": state_gradients(tested, given)}


@torch.no_grad()
def of_interventions(tested, given) -> dict[str, torch.Tensor]:
    output = tested(given)
    quantities = {
        "permuted": interventions.permutation_effect(20),
        "under": interventions.substituted(5),
        "alone": interventions.token_probabilities,
        "adversary": interventions.adversary(0.05, "gradient", with_attention=True, steps=40),
        "top": interventions.single_erasure(RANKINGS),
        "removed": interventions.until_flip(RANKINGS),
    }
    found = {"uniform": interventions.uniform(tested, output)}
    found |= {f"by {name}": ranking(tested, output) for name, ranking in RANKINGS.items()}
    for name, quantity in quantities.items():
        value = quantity(tested, given, output)
        value = value if isinstance(value, dict) else {"": value}
        found |= {f"{name} {part}": values for part, values in value.items()}
    return {name: value.double() for name, value in found.items()}


def are_the_same(found: dict, expected: dict, without: tuple[str, ...] = ()) -> None:
    assert found.keys() == expected.keys()
    for name in found:
        if not name.startswith(without):
            assert torch.allclose(found[name], expected[name], atol=1e-9, rtol=0, equal_nan=True), name


@pytest.mark.parametrize(("encoder", "outputs"), [("bilstm", 1), ("average", 3), ("conv", 1), ("transformer", 3)])
def test_importance_of_the_interface_alone_is_that_of_the_shortcuts(encoder, outputs):
    tested, given = model(encoder, outputs=outputs), batch(LENGTHS)
    expected = of_importance(tested, given)
    for kind in (Foreign, NotAffine):
        are_the_same(of_importance(kind(tested), given), expected)


@pytest.mark.parametrize("outputs", [1, 3])
def test_interventions_on_any_read_out_are_those_on_an_affine_one(outputs, monkeypatch):
    tested, given = model("average", outputs=outputs), batch(LENGTHS)
    with torch.no_grad():
        tested.decoder.weight.mul_(3)
    expected = of_interventions(tested, given)
    assert expected["removed attention_count"].isfinite().any(), "decisions flip"
    are_the_same(of_interventions(Foreign(tested), given), expected)
    by_reading = of_interventions(NotAffine(tested), given)
    needs_affine = ("removed fewest", *(name for name in expected if name.endswith("_support")))
    are_the_same(by_reading, expected, without=needs_affine)
    assert all(by_reading[name].isnan().all() for name in by_reading if name.startswith(needs_affine[1:]))
    assert by_reading["removed fewest_count"].isnan().all()
    monkeypatch.setattr(interface, "CELLS", 30)
    are_the_same(of_interventions(NotAffine(tested), given), by_reading)


def test_a_foreign_model_against_brute_force():
    tested, given = pooled(), batch((3, 5, 1))
    output = check_interface(tested, given)
    p = probabilities(output.logits).detach()
    deleted = importance.leave_one_out(tested, given)
    for row, place in given.mask[:2].nonzero().tolist():
        without = tested(shortened_by_hand(given, row, place)).logits
        assert torch.allclose(deleted[row, place], total_variation(probabilities(without)[0], p[row]), atol=1e-9)
    nothing = tested.read_out(output, torch.zeros_like(output.attention))
    assert torch.allclose(deleted[2, 1], total_variation(probabilities(nothing)[2], p[2]), atol=1e-9)
    for needs in (interventions.fewest_to_flip, partial(interventions.adversarial_attention, epsilon=0.01)):
        with pytest.raises(ValueError, match="method='gradient'|and this model has none"):
            needs(tested, output)


def test_two_logits_are_measured_as_their_difference_alone_is():
    tested, given = model("average", outputs=2), batch(LENGTHS)
    one, both = model("average", outputs=1), tested(given)
    last = {f"decoder.{name}": value[1:] - value[:1] for name, value in tested.decoder.state_dict().items()}
    one.load_state_dict(tested.state_dict() | last)
    for epsilon in (0.02, 0.1):
        attention, jsd = interventions.adversarial_attention(tested, both, epsilon)
        moved = total_variation(tested.read_out(both, attention).softmax(-1), both.logits.softmax(-1))
        assert (moved <= epsilon + 1e-9).all() and moved.max() > 0.95 * epsilon
        assert torch.allclose(jsd, interventions.adversarial_attention(one, one(given), epsilon)[1], atol=1e-9)
    of_two, of_one = of_interventions(tested, given), of_interventions(one, given)
    of_one["uniform"], of_two["uniform"] = (probabilities(of["uniform"]) for of in (of_one, of_two))  # of logits
    are_the_same(of_two, of_one)


def test_a_model_limits_the_words_of_one_forward_pass():
    given, tested, most = batch((30, 1, 6, 9)), model(), []

    class Few(Foreign):
        words_at_once = 40

        def forward(self, given, attention=None):
            most.append(given.tokens.numel())
            return super().forward(given, attention)

    quantities = [importance.quantity("loo", importance.leave_one_out), of_inputs_to_states]
    found = [measure(kind(tested), [given], quantities) for kind in (Foreign, Few)]
    assert max(most) <= 40 and len(most) > 10
    for name in ("loo", "inputs_to_states_entropy"):
        np.testing.assert_allclose(*(np.hstack(one[name]) for one in found), atol=1e-9)


def gives(**fields):
    """A forward pass whose output has other fields, each a function of the output."""

    def forward(self, given, attention=None):
        output = Pooled.forward(self, given, attention)
        return replace(output, **{name: value(output) for name, value in fields.items()})

    return {"forward": forward}


def pools(extra):
    """A Pooled whose logits are off by what depends on weights and states."""
    return {"pooled": lambda self, weights, hidden: Pooled.pooled(self, weights, hidden) + extra(weights, hidden)}


def keeps(self, given, attention=None):
    """Without gradients its output is that of the first texts of these lengths."""
    kept, key = self.__dict__.setdefault("kept", {}), tuple(given.lengths.tolist())
    output = Pooled.forward(self, given, attention)
    return output if torch.is_grad_enabled() else kept.setdefault(key, output)


ITS, READ = Pooled.from_embeddings, Pooled.read_out
OTHER = "gives other logits"
FAULTS = [
    ({"token_logits": None}, r"token_logits\(output\) failed: TypeError: 'NoneType'"),
    ({"forward": lambda self, given, attention=None: given.tokens}, "gave a Tensor; it must give a lib.models.ModelOu"),
    (gives(hidden=lambda o: o.hidden[:, 0]), r"hidden has shape \(5, 8\); expected \(5, 9, any\)"),
    (gives(attention=lambda o: o.scores.softmax(-1)), r"the attention has 0\.\d+ off the mask"),
    (gives(attention=lambda o: 2 * o.attention), "the attention of a text sums to 2"),
    (gives(embeddings=lambda o: o.embeddings.detach()), "embeddings are not in the graph"),
    ({"forward": lambda self, given, attention=None: Pooled.forward(self, given)}, "is not the attention that was giv"),
    ({"from_embeddings": lambda self, e, given, a=None: ITS(self, 2 * e, given, a)}, rf"embeddings, batch\) {OTHER}"),
    ({"from_embeddings": lambda self, e, given, a=None: ITS(self, e, given)}, rf"batch, attention\) {OTHER}"),
    ({"from_embeddings": lambda self, e, given, a=None: Pooled.forward(self, given, a)}, "does not compute its logits"),
    ({"read_out": lambda self, o, a: READ(self, o, a) + 1}, rf"read_out\(output, output.attention\) {OTHER}"),
    ({"read_out": lambda self, o, a: self.pooled(a, o.hidden)}, r"draw, token\) failed: RuntimeError"),
    ({"token_logits": lambda self, o: (o.hidden[..., :2], torch.zeros(2).double())}, r"attention @ token_logits \+ bi"),
    (pools(lambda weights, hidden: hidden.shape[-2]), rf"without padding model\(batch\) {OTHER}"),
    (pools(lambda weights, hidden: len(weights)), rf"with each text alone model\(batch\) {OTHER}"),
    (pools(lambda weights, hidden: torch.rand(1)), rf"a second time model\(batch\) {OTHER}"),
    ({"forward": keeps}, rf"without gradients model\(other texts\) {OTHER}"),
    (gives(mask=lambda o: o.mask.logical_not_()), "changes the batch"),
    ({"forward": lambda self, given, attention=None: exit()}, "failed: SystemExit"),
    (gives(scores=lambda o: None), "scores is a NoneType; expected a Tensor"),
    (gives(attention=lambda o: o.attention.float()), "attention is of torch.float32; expected torch.float64"),
    ({"pooled": lambda self, w, hidden: Pooled.pooled(self, w, hidden.detach() + 0.1 * hidden)}, "gradient .* misses"),
    ({"read_out": lambda self, o, w: READ(self, o, 0.9 * w.detach() + 0.1 * w)}, "gradient of model.read_out.* misses"),
]


@pytest.mark.parametrize(("methods", "fault"), FAULTS)
def test_what_is_wrong_with_an_interface_is_one_sentence(methods, fault):
    with pytest.raises(InterfaceError, match=fault) as raised:
        check_interface(pooled(type("Broken", (Pooled,), methods)), batch(LENGTHS))
    assert "\n" not in str(raised.value)


MINE = """\
import torch
from tests.test_own_model import Pooled

def load(corpus):
    torch.manual_seed(0)
    return Pooled(len(corpus.vocabulary), len(corpus.classes))

def short(corpus):
    model = load(corpus)
    model.table = torch.nn.Embedding(len(corpus.vocabulary) - 1, 6)
    return model

one = torch.nn.Linear(1, 1)
several, three = (lambda corpus: [load(corpus).half(), load(corpus)]), (lambda corpus: Pooled(9999, 3))
twice, empty, none = (lambda corpus: [one, one]), (lambda corpus: ()), (lambda corpus: None)
fails, leaves = (lambda corpus: open("no weights")), (lambda corpus: exit(0))
other = lambda corpus: (one, __import__("lib.datasets").datasets.load("planted-documents", "quick"))
"""


@pytest.fixture
def mine(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


@pytest.fixture(scope="module")
def corpus():
    return load("planted", "quick")


def test_a_file_with_a_model_is_measured_from_end_to_end(mine, corpus, capsys):
    corpus = replace(corpus, test=replace(corpus.test, instances=corpus.test.instances[:40]))
    own = own_model("mine.py:several", Run("planted"), corpus=corpus)
    assert [str(one.run) for one in own] == ["planted mine several, seed 0", "planted mine several, seed 1"]
    assert "mine.py:several passed the check on 40 texts" in capsys.readouterr().out
    note = "The model's weights, saved in torch.float16, are measured in torch.float32."
    assert [note in one.corpus.notes for one in own] == [True, False] and not has_optimum(own[0])
    quantities = [attention_weights, importance.quantity("loo", importance.leave_one_out), of_inputs_to_states]
    quantities += [interventions.until_flip(RANKINGS), interventions.adversary(0.05, "gradient", steps=20)]
    measured = add_flips(correlate(measure_all(own, quantities), [("attention", "loo")]), ["attention", "fewest"])
    summary = summarise(measured).set_index("quantity")
    assert summary.loc["kendall_tau_attention_vs_loo", ["n", "seeds"]].tolist() == [40, 2]
    assert measured["flips_attention"].notna().any() and measured["flips_fewest"].isna().all()
    assert information(own[:1], words=20)["plug_in"].notna().all()
    settings = papers.PAPERS["correlation"].settings(model="mine.py:several")
    assert "the model is your own" in results.keep("correlation", settings, own, summary, summary).sentence


@pytest.mark.parametrize(
    ("named", "fault"),
    [
        ("yours.py", "there is no folder or .py file yours.py; name one: a Hugging Face folder, my_model.py or my_mod"),
        ("~nobody/mine.py", "there is no folder or .py file ~nobody/mine.py"),
        (f"{'x' * 5000}.py", "there is no folder or .py file xxx"),
        ("a\udcff.py", r"there is no folder or .py file a\\udcff.py"),
        ("model.safetensors", "there is no folder or .py file model.safetensors"),
        ("folder.py", "folder.py: .*folder.py has no config.json; a pretrained model is a folder as save_pretrained"),
        ("pipe.py", "there is no folder or .py file pipe.py"),
        ("mine.py:store", "mine.py:store: the file has no function store; it has: load, short, several, three, "),
        ("mine.py:none", "mine.py:none: it gives a NoneType; it must give a torch.nn.Module"),
        ("mine.py:empty", "mine.py:empty: it gives no model; it must give a torch.nn.Module"),
        ("mine.py:twice", "it gives one module twice"),
        ("mine.py:other", "the corpus that it gives has other texts or labels than the report's"),
        ("mine.py:fails", r"mine.py:fails: fails\(corpus\) failed: FileNotFoundError: .*'no weights'"),
        ("mine.py:leaves", r"mine.py:leaves: leaves\(corpus\) failed: SystemExit: 0"),
        ("mine.py:three", "mine.py:three: the model has 3 outputs; planted has 2 classes, so it needs 2, or one"),
        ("mine.py:short", r"model\(batch\) on all texts of test failed: IndexError"),
        ("broken 2.0.py", r"broken 2.0.py:load: the file failed: SyntaxError"),
        ("ends.py", "ends.py:load: the file failed: SystemExit: 2"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence(mine, corpus, named, fault):
    (mine / "broken 2.0.py").write_text("def load(corpus) return")
    (mine / "ends.py").write_text("import sys\nsys.exit(2)")
    (mine / "folder.py").mkdir()
    os.mkfifo(mine / "pipe.py")
    (mine / "model.safetensors").touch()
    with pytest.raises(ModelError, match=fault) as raised:
        own_model(named, Run("planted"), corpus=corpus)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 600
    assert own_model("", Run("planted")) == []


def test_the_parameter_model_is_checked_before_anything_runs(mine):
    notebook = parameters.find_notebook("correlation")
    values = parameters.given_parameters(notebook, [("model", "mine.py")])
    assert values == {"model": f"{mine / 'mine.py'}:load"}
    named = r"correlation-planted-model-mine-load-[0-9a-f]{6}"
    assert re.fullmatch(named, report_name(notebook, values)), "without its folder"
    assert run.fingerprint(notebook, values) != run.fingerprint(notebook, values), "its report is made anew each time"
    leave_out = [("model", "mine.py"), ("encoders", "average"), ("seeds", "0")]
    for given, fault in (([("model", "yours.py")], "no folder or .py file"), (leave_out, "leave encoders, seeds out")):
        with pytest.raises(Refused, match=fault):
            parameters.given_parameters(notebook, given)


def of_docs(number: int) -> str:
    """A block of Python of docs/own-model.md, from 0."""
    text = (PROJECT / "docs" / "own-model.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)[number]


def test_the_docs_corpus_is_the_reports():
    names = {}
    exec(of_docs(2), names)
    same = load_corpus(Run("planted"), None)
    assert names["corpus"].checksum == same.checksum and names["words"] == len(same.vocabulary)
    ids = np.concatenate(names["texts"])
    assert ids.max() < names["words"] and len(names["labels"]) == len(same.train)


def test_the_docs_module_is_measured_as_it_is_documented(mine, corpus, monkeypatch):
    assert len(of_docs(1).splitlines()) <= 30
    (mine / "my_model.py").write_text(of_docs(1))
    made = {}
    exec(of_docs(1), made)
    save_file(made["Classifier"](len(corpus.vocabulary), 2).state_dict(), "my_weights.safetensors")
    monkeypatch.chdir(PROJECT)  # where a notebook runs: the weights lie beside the file
    (own,) = own_model(f"{mine / 'my_model.py'}", Run("planted"), corpus=corpus)
    assert has_optimum(own)
    names = {"trained": [own]}
    exec(of_docs(-3) + of_docs(-2), names)
    assert names["my_taus"]["quantity"].str.startswith("kendall_tau_attention_vs_leave_one_out_of_input").any()
    assert len(names["my_texts"]) == len(corpus.test) and len(names["my_row"]["attention_weights"]) == 9
    exec(of_docs(-1), made | {"corpus": corpus}, trains := {})
    assert all(one.grad.isfinite().all() for one in trains["mine"].parameters())


def named_by(code: str) -> dict[str, str]:
    """The names that code assigns or imports, each with what it is then."""
    nodes = [*ast.walk(ast.parse(code))]
    assigned = {node.id: "assigned" for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    imports = [(node, one) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for one in node.names]
    return assigned | {one.asname or one.name: f"{getattr(node, 'module', '')} {one.name}" for node, one in imports}


@pytest.mark.parametrize("path", sorted((PROJECT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_docs_code_changes_no_name_of_a_notebook_and_finds_its_models(path):
    cells = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    there, pasted = named_by("\n".join(cells)), named_by(of_docs(-3) + of_docs(-2))
    assert "trained" in there and [name for name in pasted if there.get(name, pasted[name]) != pasted[name]] == []
