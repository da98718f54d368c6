"""The adapter for Hugging Face classifiers, on tiny random ones, against a BERT written by hand."""

import json
import math
from copy import deepcopy
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import small
import torch
from small import shortened_by_hand
from test_own_model import of_docs

from lib import datasets, importance, interventions
from lib.analysis import attention_weights, correlate, measure, measure_all, summarise
from lib.analysis.correlation import MAPS, audit
from lib.datasets import own_text
from lib.datasets.batches import Batch, collate
from lib.datasets.corpus import Corpus, Instance, Split, Vocabulary
from lib.datasets.pretrained import words_read
from lib.datasets.subwords import corpus_in_subwords, in_tokens
from lib.datasets.text import PAIR
from lib.metrics import kendall_tau, probabilities, total_variation
from lib.models import huggingface
from lib.models.check_interface import check_interface
from lib.models.huggingface import HuggingFaceClassifier, Layout, order_of, reweighted
from lib.projections import softmax, uniform
from lib.training import Run, Trained
from lib.training.own_model import ModelError, OwnRun, own_model

SUBWORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad film the a un ##s ##ly ##good . it was".split()
TEXTS = ("Good films, it was", "ungoodly", "the the bad film was badly a good film. It was it.", "a film good", "")
TEXTS += ("bad goods badly film", "it")
SMALL = {"vocab_size": len(SUBWORDS), "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
SMALL |= {"intermediate_size": 24, "max_position_embeddings": 40, "num_labels": 3}
DISTILBERT = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24}


def tokenizer_of(transformers, *more):
    return transformers.BertTokenizer(vocab={subword: number for number, subword in enumerate([*SUBWORDS, *more])})


@pytest.fixture(scope="module")
def tokenizer(transformers):
    return tokenizer_of(transformers)


def tiny(transformers, kind: str = "Bert", head: str = "ForSequenceClassification", **options):
    """A classifier with weights large enough that its attention is far from uniform."""
    config = getattr(transformers, f"{kind}Config")(**(SMALL | options))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = getattr(transformers, f"{kind}{head}")(config)
        for parameter in made.parameters():
            torch.nn.init.normal_(parameter, std=0.6)
    return made.double().eval()


def corpus_of(classes=("worse", "better"), query=None, texts=TEXTS) -> Corpus:
    """All three splits are the same texts."""
    texts = [(f"t{n}", text, tuple(text.split()), n % len(classes), ((0, 1),)) for n, text in enumerate(texts)]
    rows = [Instance(*text, query=query) for text in texts]
    vocabulary = Vocabulary.of([row.tokens for row in rows])
    splits = [Split(name, tuple(rows), vocabulary) for name in ("train", "dev", "test")]
    return Corpus("tiny", "Tiny", classes, vocabulary, *splits)


def given_to(tokenizer) -> Batch:
    split = corpus_in_subwords(corpus_of(), tokenizer, 510).test
    return collate(split, np.arange(len(split)))


given = pytest.fixture(scope="module")(given_to)


def ids_of(adapted: HuggingFaceClassifier, given: Batch) -> torch.Tensor:
    """(batch, word) of words of one subword; padding is 0."""
    return adapted.pieces[given.tokens][:, :, 0].clamp(min=0)


def inside(given: Batch) -> torch.Tensor:
    return torch.arange(given.tokens.shape[1]) < given.lengths[:, None]


def by_hand(bert, ids, inside, imposed=None) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Logits of a BertForSequenceClassification, and its weights of each layer (batch, head, word, word).

    Args:
        imposed: (layer, head) -> the first word's row (batch, word) in place of the head's own.
    """
    eps, layers = bert.config.layer_norm_eps, []
    norm = lambda module, x: torch.nn.functional.layer_norm(x, x.shape[-1:], module.weight, module.bias, eps)  # noqa: E731
    parts = bert.bert.embeddings
    states = parts.word_embeddings.weight[ids] + parts.token_type_embeddings.weight[0]
    states = norm(parts.LayerNorm, states + parts.position_embeddings.weight[: ids.shape[1]])
    for number, layer in enumerate(bert.bert.encoder.layer):
        own = layer.attention.self
        parts = (part(states).unflatten(2, (2, 8)) for part in (own.query, own.key, own.value))
        query, key, value = (part.transpose(1, 2) for part in parts)
        scores = (query @ key.transpose(2, 3) / math.sqrt(8)).masked_fill(~inside[:, None, None], -torch.inf)
        weights = scores.softmax(dim=-1)
        for (where, head), row in (imposed or {}).items():
            if where == number:
                weights = weights.clone()
                weights[:, head, 0] = row
        layers.append(weights)
        attended = (weights @ value).transpose(1, 2).flatten(2)
        states = norm(layer.attention.output.LayerNorm, states + layer.attention.output.dense(attended))
        inner = torch.nn.functional.gelu(layer.intermediate.dense(states))
        states = norm(layer.output.LayerNorm, states + layer.output.dense(inner))
    return bert.classifier(bert.bert.pooler.dense(states[:, 0]).tanh()), layers


def in_place_of(weights, mask, attention, heads) -> dict[int, torch.Tensor]:
    """Rows (batch, word) of the first word: a head's own weights times attention / their mean over these heads."""
    rows, imposed = weights[:, heads, 0], {}
    mean = rows.mean(dim=1) * mask
    for number, head in enumerate(heads):
        words = rows[:, number] * mask
        new = torch.where(mask, words * attention / mean, 0)
        total = new.sum(dim=1, keepdim=True)
        new = torch.where(total > 0, new / total * words.sum(dim=1, keepdim=True), 0)
        imposed[head] = rows[:, number] * ~mask + new
    return imposed


@pytest.mark.parametrize("attention", [(-1, -2), (1, 1), (0, 1), -1, 0])
def test_a_bert_by_hand_agrees_under_any_attention(transformers, tokenizer, given, attention, monkeypatch):
    bert = tiny(transformers)
    adapted, (layer, head) = HuggingFaceClassifier(bert, tokenizer, attention), np.broadcast_to(attention, 2)
    layer, heads = layer % 2, [head % 2] if isinstance(attention, tuple) else [0, 1]
    assert len(heads) == 2 or adapted.attention_name.startswith(f"head {heads[0] + 1} of ")
    output, ids = check_interface(adapted, given), ids_of(adapted, given)
    logits, weights = by_hand(bert, ids, inside(given))
    rows = weights[layer][:, heads, 0]
    assert torch.allclose(output.logits, logits, atol=1e-9)
    assert torch.allclose(bert(ids, attention_mask=inside(given).long()).logits, logits, atol=1e-9), "left as it was"
    own = rows.mean(dim=1).masked_fill(~given.mask, 0)
    assert torch.allclose(output.attention, own / own.sum(dim=1, keepdim=True), atol=1e-12)
    assert (rows[:, :, 0] > 1e-3).all(), "special tokens have weight, and keep it"
    draws = torch.rand(len(given), 3, given.tokens.shape[1], generator=torch.Generator().manual_seed(0)).double()
    draws = draws.masked_fill(~given.mask[:, None], 0)
    draws[:, 2] = 0  # nothing is attended
    draws[:, :2] = draws[:, :2] / draws[:, :2].sum(dim=-1, keepdim=True)
    read = adapted.read_out(output, draws)
    for k in range(3):
        imposed = in_place_of(weights[layer], given.mask, draws[:, k], heads)
        imposed = {(layer, number): row for number, row in imposed.items()}
        expected = by_hand(bert, ids, inside(given), imposed)[0]
        assert torch.allclose(read[:, k], expected, atol=1e-9) and not torch.allclose(expected, logits, atol=1e-3)
        assert torch.allclose(adapted(given, attention=draws[:, k]).logits, expected, atol=1e-9)
    monkeypatch.setattr(huggingface, "WORDS", 7)  # in small chunks too
    assert torch.allclose(adapted.read_out(output, draws), read, atol=1e-12)


def test_weights_of_0_are_reweighted_and_have_gradients():
    """Of two heads: the first has only the last word, both lack the third; the second nearly lacks the last."""
    weights = torch.tensor([[[0.2, 0, 0, 0.8], [0.1, 0.9, 0, 1e-300]]], dtype=torch.float64)
    layout = Layout(torch.arange(4).view(1, 4, 1), torch.tensor([[False, True, True, True]]))
    for attention, expected in (
        ([0, 0, 0, 1], [[0.2, 0, 0, 0.8], [0.1, 0, 0, 0.9]]),
        ([0, 0, 1, 0], [[0.2, 0, 0.8, 0], [0.1, 0, 0.9, 0]]),
        ([0, 0, 0, 0], [[0.2, 0, 0, 0], [0.1, 0, 0, 0]]),
    ):
        given = torch.tensor([attention], dtype=torch.float64, requires_grad=True)
        logs = (scores := weights.log().clamp(min=torch.finfo(torch.float64).min).requires_grad_()).log_softmax(dim=-1)
        rows = reweighted(logs, logs - logs.logsumexp(dim=1, keepdim=True), layout, given)
        assert torch.allclose(rows, torch.tensor([expected], dtype=torch.float64), atol=1e-12)
        assert all(one.isfinite().all() for one in torch.autograd.grad(rows.square().sum(), (given, scores)))


SMALLER = {"embedding_size": 8}
OTHERS = {"DistilBert": DISTILBERT, "Electra": SMALLER, "Albert": SMALLER, "Ernie": {}, "NomicBert": {}}
OTHERS |= {kind: {"pad_token_id": 0} for kind in ("Roberta", "XLMRoberta", "Camembert")}
OTHERS |= {"ModernBert": {"classifier_pooling": "cls", "pad_token_id": 0}}


@pytest.mark.parametrize(("kind", "options"), OTHERS.items())
def test_other_kinds_have_the_interface(transformers, tokenizer, given, kind, options):
    adapted = HuggingFaceClassifier(made := tiny(transformers, kind, **options), tokenizer)
    output = check_interface(adapted, given)
    of_ids = made(ids_of(adapted, given), attention_mask=inside(given).long()).logits
    assert torch.allclose(output.logits, of_ids, atol=1e-9), "positions and all, as transformers reads tokens"
    assert (adapted.read_out(output, uniform(output.scores, output.mask)) - output.logits).abs().max() > 1e-4


DEBERTA = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8, "type_vocab_size": 0}
MEAN = {"classifier_pooling": "mean", "pad_token_id": 0}
COPIED = [("DebertaV2", DEBERTA), ("DebertaV2", DEBERTA | {"conv_kernel_size": 3}), ("ModernBert", MEAN)]


@pytest.mark.parametrize(("kind", "options"), COPIED)
def test_deberta_and_a_mean_of_all_words_agree_with_an_untouched_copy(transformers, tokenizer, given, kind, options):
    """The copy's last layer is given other weights times its values, row by row, in front of its output."""
    copy = deepcopy(made := tiny(transformers, kind, **options))
    adapted = HuggingFaceClassifier(made, tokenizer)
    output, seen, real = check_interface(adapted, given), {}, inside(given)
    last = copy.model.layers[-1].attn if kind == "ModernBert" else copy.deberta.encoder.layer[-1].attention
    values, end = (last.Wqkv, last.Wo) if kind == "ModernBert" else (last.self.value_proj, last.output.dense)
    values.register_forward_hook(lambda module, args, output: seen.update(values=output[..., -16:]))
    copy.set_attn_implementation("eager")
    texts = {"input_ids": ids_of(adapted, given), "attention_mask": real.long()}
    own = copy(**texts, output_attentions=True)
    assert torch.allclose(output.logits, own.logits, atol=1e-9)
    weights, first = own.attentions[-1].detach().clone(), kind != "ModernBert"
    rolled = torch.eye(real.shape[1]).double()[:1] if first else real.double() / given.lengths[:, None]
    for layer in reversed(own.attentions):
        rolled = (rolled + (rolled[:, None] @ layer.mean(1)).squeeze(1)) / 2
    found = importance.self_attention(HuggingFaceClassifier(made, tokenizer), given, output)["rollout"]
    assert torch.allclose(found, rolled * given.mask, atol=1e-9), "also where a second one is made of the module"
    read = [range(1 if first else int(words)) for words in given.lengths]
    mean = torch.stack([row[:, list(of)].mean((0, 1)) for row, of in zip(weights, read, strict=True)]) * given.mask
    assert torch.allclose(output.attention, mean / mean.sum(dim=1, keepdim=True), atol=1e-9)
    other = softmax(torch.randn(given.mask.shape, generator=torch.Generator().manual_seed(0)).double(), given.mask)
    for text, mask in enumerate(given.mask):
        for head, word in product((0, 1), read[text]):
            row = weights[text, head, word]
            new = row[mask] * other[text, mask] / mean[text, mask]
            row[mask] = new / new.sum() * row[mask].sum()
    attended = weights @ seen["values"].unflatten(2, (2, 8)).transpose(1, 2)
    end.register_forward_pre_hook(lambda module, args: (attended.transpose(1, 2).flatten(2), *args[1:]))
    expected = copy(**texts).logits
    assert torch.allclose(adapted.read_out(output, other), expected, atol=1e-9)
    assert torch.allclose(adapted(given, attention=other).logits, expected, atol=1e-9)
    assert (expected - own.logits).abs().max() > 1e-3
    if not adapted.first_alone:
        searched = interventions.adversary(method="gradient")(adapted, given, output)["jsd"]
        by_chance = interventions.adversary_by_chance(method="gradient")(adapted, given, output)
        assert searched.isnan().all() and by_chance.isnan().all(), "it would take hours"


def test_what_cannot_be_measured_is_refused_in_a_sentence(transformers, tokenizer):
    bert, mpnet = tiny(transformers), tiny(transformers, "MPNet")
    endless = transformers.GPT2Tokenizer(vocab={"a": 0, "<|endoftext|>": 1}, merges=[])
    cases = [((bert, endless), "makes 'a' of 'a'; it needs a pad token, cls before a text")]
    cases += [((mpnet, tokenizer), "does not expose its attention through transformers' AttentionInterface")]
    cases += [((bert.bert, tokenizer), "a BertModel of 3 labels does not give a text one of several classes")]
    cases += [((bert, tokenizer, (2, 0)), r"no attention \(2, 0\); the model has 2 layers of 2")]
    cases += [((bert, tokenizer, -3), "no attention -3; the model has 2 layers of 2 heads, from 0: name a layer, or")]
    for given, fault in cases:
        with pytest.raises(ValueError, match=fault):
            HuggingFaceClassifier(*given)


def saved(folder: Path, *parts) -> Path:
    for part in parts:
        part.save_pretrained(folder)
    return folder


def changes(file: str = "config.json", **entries):
    return lambda folder: (folder / file).write_text(json.dumps(json.loads((folder / file).read_text()) | entries))


def replaces(*files: str, by: str = ""):  # takes them away, or puts a text into them
    return lambda folder: [(folder / one).write_text(by) if by else (folder / one).unlink() for one in files]


CODE = {"auto_map": {name: "evil.Evil" for name in ("AutoConfig", "AutoModelForSequenceClassification")}}
BAD = [  # what is saved, how it is changed, what is said
    ({}, replaces("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"), "no config.json; a"),
    ({}, replaces("config.json"), "has no config.json"),
    ({}, replaces("config.json", by="{"), "config.json is no JSON"),
    ({}, replaces("config.json", by="[]"), "config.json is a JSON list; it must hold an object"),
    ({}, changes(model_type="evil"), r"cannot read .* \(Auto.*\): The checkpoint .* has model type `evil`"),
    ({}, changes(**CODE), r"config.json asks to run code of its own \(auto_map\), which is refused; allowed"),
    ({}, changes("tokenizer_config.json", **CODE), r"tokenizer_config.json asks to run code of its own"),
    ({}, replaces("model.safetensors.index.json", by='{"weight_map": {"a": "b.bin"}}'), r"own \(weight_map\)"),
    ({}, changes(attn_implementation="evil/kernel"), r"code of its own \(attn_implementation\)"),
    ({}, replaces("tokenizer.json"), "has no tokenizer.json; save the tokenizer too: tokenizer.save_pretrained"),
    ({}, replaces("tokenizer.json", by="{"), r"transformers cannot read .* \(AutoTokenizer\): "),
    ({}, replaces("model.safetensors"), "has only pytorch_model.bin, a pickle, which can run code; allowed: model.saf"),
    ({}, replaces("model.safetensors", "pytorch_model.bin"), "has no weights; allowed: model.safetensors"),
    ({}, replaces("model.safetensors", by="weights"), r"read .* \(AutoModelForSequenceClassification\): "),
    ({}, changes(num_hidden_layers=3), "16 weights are missing, .* shape, first bert.encoder.layer.2.att"),
    ({}, changes(num_hidden_layers=1), "mine, saved as BertForSequenceClassification, is no trained sequence"),
    ({}, changes(hidden_size=8), "weights are missing, too many, or of another shape, first bert.embeddings.LayerNorm"),
    ({}, changes(id2label={"0": "a", "1": "news"}), "s 2 classes are a, news, the texts' 2 worse, better; allowed"),
    ({"head": "Model"}, changes(), r"saved as BertModel, is no trained sequence classifier \(BertForSequenceClass"),
    ({"head": "Model"}, changes(architectures=None), "2 weights are missing, too many, .* first classifier.bias"),
    ({"head": "ForTokenClassification"}, changes(), "saved as BertForTokenClassification, is no trained sequence"),
    ({"num_labels": 1}, changes(), "a BertForSequenceClassification of 1 labels does not give a text one of several"),
    ({"problem_type": "multi_label_classification"}, changes(), "of 2 labels, multi_label_classification, does not"),
    ({"num_labels": 3}, changes(), "s 3 classes are LABEL_0, LABEL_1, LABEL_2, the texts' 2 worse, better; allowed"),
    ({"vocab_size": 4}, changes(), "the tokenizer has 17 subwords, the model embeddings of 4 alone"),
    ({"kind": "GPT2", "n_embd": 16, "n_layer": 2, "n_head": 2, "pad_token_id": 0}, changes(), r"the states of \[4\]"),
]


@pytest.mark.parametrize(("options", "change", "fault"), BAD)
def test_a_bad_folder_is_one_sentence_and_no_code_of_it_runs(
    transformers, tokenizer, tmp_path, monkeypatch, options, change, fault
):
    monkeypatch.chdir(tmp_path)
    folder = saved(tmp_path / "mine", tiny(transformers, **({"num_labels": 2} | options)).float(), tokenizer)
    (folder / "evil.py").write_text("open('ran', 'w')\nEvil = 1\n")
    (folder / "pytorch_model.bin").write_bytes(b"cbuiltins\nopen\n(S'ran'\nS'w'\ntR.")
    change(folder)
    with pytest.raises(ModelError, match=fault) as raised:
        own_model("mine", Run("planted"), corpus=corpus_of())
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 500 and str(raised.value).startswith("mine: ")
    assert not (tmp_path / "ran").exists() and not (folder / "ran").exists()


def test_importance_is_that_of_the_shortened_texts_and_of_the_graph(transformers, tokenizer, given):
    adapted = HuggingFaceClassifier(bert := tiny(transformers), tokenizer, (-1, 0))
    p = probabilities(adapted(given).logits.detach())
    deleted = importance.leave_one_out(adapted, given)
    for row, place in given.mask.nonzero().tolist():
        text = shortened_by_hand(given, row, place)
        logits = bert(ids_of(adapted, text)).logits  # of one subword nothing is left but start and end
        assert torch.allclose(deleted[row, place], total_variation(probabilities(logits)[0], p[row]), atol=1e-9)
    some, nothing = given.lengths < 8, probabilities(bert(torch.tensor([[2, 3]])).logits)  # [CLS] and [SEP]
    found = interventions.shapley(5).function(adapted, given.rows(some), adapted(given.rows(some))).sum(dim=1)
    assert torch.allclose(found, (p - nothing).gather(1, p.argmax(dim=1)[:, None])[some, 0], atol=1e-9)
    embeddings = bert.get_input_embeddings()(ids_of(adapted, given)).detach().requires_grad_()
    chances = bert(inputs_embeds=embeddings, attention_mask=inside(given).long()).logits.softmax(dim=-1)
    (expected,) = torch.autograd.grad(chances.amax(dim=-1).sum(), embeddings)
    expected = expected.norm(dim=-1).masked_fill(~given.mask, 0)
    assert torch.allclose(importance.gradient(adapted, given), expected, atol=1e-9)
    detached = importance.gradient(adapted, given, through_attention=False, of="hidden")
    weights = (own := adapted(given).attention) / own.amax(dim=1, keepdim=True)
    assert torch.allclose(detached / detached.amax(dim=1, keepdim=True), weights), "the weight times one number"


@pytest.mark.parametrize("kind", ["ours", "pretrained", "classifier"])
def test_rollout_and_attention_times_gradient_are_products_of_matrices(transformers, tokenizer, tmp_path, given, kind):
    """Abnar & Zuidema's (2020) and Chefer et al.'s (2021) matrices of all pairs of words, then what is read out."""
    if kind == "ours":
        tested, given = small.model("transformer", heads=2), small.batch((5, 3, 7))
        hidden = tested.encoder(tested.embedding(given.tokens), given.lengths, layers := [])
    else:
        tested = HuggingFaceClassifier(bert := tiny(transformers), tokenizer)
        logits, layers = by_hand(bert, ids_of(tested, given), inside(given))
        read = torch.eye(given.tokens.shape[1]).double()[:1].expand(len(given), -1).requires_grad_()
    if kind == "pretrained":
        folder = saved(tmp_path, tiny(transformers, head="Model"), tokenizer)
        torch.manual_seed(0)
        vectors = bert.get_input_embeddings().weight.detach()[tested.pieces[:, 0].clamp(min=0)]
        tested = small.AttentionClassifier(vectors, str(folder), folder=folder).double().eval()
        options = {"attention_mask": inside(given).long(), "output_attentions": True}
        tested.encoder.transformer.set_attn_implementation("eager")
        hidden, layers = tested.encoder.transformer(inputs_embeds=tested.embedding(given.tokens), **options)[:2]
    if kind != "classifier":
        output = tested.from_hidden(hidden, None, given.mask, None)
        logits, read = output.logits, output.attention
    *gradients, last = torch.autograd.grad(probabilities(logits).amax(dim=1).sum(), [*layers, read], allow_unused=True)
    found = importance.self_attention(tested, given, tested(given))
    for row, real in enumerate(given.mask):
        rolled = relevance = identity = torch.eye(len(real)).double()
        for weights, gradient in zip(layers, gradients, strict=True):
            rolled = (weights[row].mean(0) + identity) / 2 @ rolled
            relevance = relevance + (weights[row] * gradient[row]).relu().mean(0) @ relevance
        assert torch.allclose(found["rollout"][row][real], (read[row] @ rolled)[real])
        start = read[row] if last is None else (read * last)[row].relu()
        expected = (start @ relevance)[real]
        assert torch.allclose(found["times_gradient"][row][real], expected) and (expected > 0).any()
    nothing = measure(small.model(), [small.batch()], [importance.self_attention])
    assert nothing["self_attention_rollout"].map(np.isnan).map(all).all()


def test_a_corpus_in_subwords_is_the_texts_as_they_were_written(tokenizer):
    corpus = corpus_of()
    written = corpus_in_subwords(corpus, tokenizer, 510)
    texts = written.test.instances
    assert texts[0].tokens == ("good", "film", "##s", "[UNK]", "it", "was") and texts[0].rationale == ((0, 1),)
    ids, offsets = written.test.encoded
    subwords = tokenizer.convert_ids_to_tokens(tokenizer(TEXTS[2])["input_ids"])
    assert [written.vocabulary.words[k] for k in ids[offsets[2] : offsets[3]][1:-1]] == subwords[1:-1]
    first = corpus_in_subwords(corpus, tokenizer, 6)
    assert first.test.instances[2].tokens == texts[2].tokens[:6]
    notes = {"1 texts of test without a subword were left out.", "1 texts of test were cut to 6 subwords."}
    assert notes <= set(first.notes)


def test_reasons_and_sentences_of_words_are_those_of_their_subwords(tokenizer):
    text = Instance("t", "Badly, ungoodly films. Was it?", ("badly", "ungoodly", "films", "was", "it"), 0)
    text = replace(text, rationale=((1, 2), (3, 5)), sentences=(3, 2))
    pieces = ("bad", "##ly", "[UNK]", "un", "##good", "##ly", "film", "##s", ".", "was", "it", "[UNK]")

    def read(words=None, **options):
        return in_tokens(text, tokenizer(text.text, truncation=True, **options).encodings[0], words)

    found, cut, words = read(), read(max_length=12), {}
    assert found.tokens == pieces and found.rationale == ((3, 6), (9, 11)) and found.sentences == (9, 3)
    assert cut.rationale == ((3, 6), (9, 10)) and cut.sentences == (9, 1)
    assert (cut := read(max_length=6)).rationale == ((3, 4),) and cut.sentences == (4,)
    whole = read(words)
    assert whole.tokens == ("Badly", ",", "ungoodly", "films", ".", "Was", "it", "?")
    assert whole.rationale == ((2, 3), (5, 7)) and whole.sentences == (5, 3)
    assert words["ungoodly"] == tuple(tokenizer.convert_tokens_to_ids(["un", "##good", "##ly"])) and len(words) == 8
    words["films"] = (0,)  # as written in another place, of other subwords
    assert read(words).tokens[3] == "films "
    assert in_tokens(replace(text, tokens=("elsewhere",)), tokenizer(text.text).encodings[0]).rationale is None


@pytest.mark.parametrize(("kind", "options"), [("Bert", {}), ("Roberta", {"pad_token_id": 0}), ("ModernBert", MEAN)])
def test_a_whole_word_is_its_subwords_together(transformers, tokenizer, given, kind, options):
    made, corpus = tiny(transformers, kind, **options), corpus_in_subwords(corpus_of(), tokenizer, 510, whole=True)
    apart, whole = (HuggingFaceClassifier(made, tokenizer) for _ in range(2))
    whole.read_words(corpus.vocabulary)
    words = collate(corpus.test, np.arange(len(corpus.test)))
    sizes = torch.tensor([[len(corpus.vocabulary.pieces[k]) for k in ids] for ids in words.tokens])
    ends, place = sizes.cumsum(dim=1)[:, :, None], torch.arange(given.mask.shape[1])
    of = ((place >= ends - sizes[:, :, None]) & (place < ends)).double()  # (text, word, subword): 1 if of the word
    assert sizes.max() == 3 and words.mask.sum() < given.mask.sum()

    def summed(values):
        return (of @ values.double()[:, :, None]).squeeze(2)

    output, expected = check_interface(whole, words), apart(given)
    assert torch.allclose(output.logits, expected.logits, atol=1e-9)
    assert torch.allclose(output.attention, summed(expected.attention), atol=1e-9)
    other = softmax(torch.randn(words.mask.shape, generator=torch.Generator().manual_seed(0)).double(), words.mask)

    def shared(attention, own):  # out to the subwords, as they have it of their own
        return own * ((attention / summed(own).masked_fill(~words.mask, 1))[:, None] @ of)[:, 0]

    for imposed in (other, other / 2):
        under = apart.read_out(expected, shared(imposed, expected.attention))
        assert torch.allclose(whole.read_out(output, imposed), under, atol=1e-9)
        assert torch.allclose(whole(words, attention=imposed).logits, under, atol=1e-9)
    assert (under - output.logits).abs().max() > 1e-3
    both = (whole, words, output), (apart, given, expected)
    maps, of_subwords = (importance.self_attention(*one) for one in both)
    norms, squares = (importance.gradient(*one[:2]) ** 2 for one in both)
    integrated = [importance.integrated_gradients(*one[:2], 5, "unknown") for one in both]
    for found, parts in ((norms, squares), integrated, *((maps[name], of_subwords[name]) for name in maps)):
        assert torch.allclose(found, summed(parts), atol=1e-9) and found.any()
    embeddings = expected.embeddings.detach().requires_grad_()
    imposed = shared(output.attention.detach(), apart.from_embeddings(embeddings, given).attention)
    chances = probabilities(apart.from_embeddings(embeddings, given, imposed).logits).sum(dim=0)
    products = [embeddings * torch.autograd.grad(one, embeddings, retain_graph=True)[0] for one in chances]
    products = sum(summed(one.sum(dim=-1)).abs() for one in products).masked_fill(~words.mask, 0)
    assert torch.allclose(importance.gradient_times_input(whole, words), products, atol=1e-9)
    deleted, before = importance.leave_one_out(whole, words), probabilities(output.logits.detach())
    for text, word in words.mask.nonzero().tolist():
        ids = ids_of(apart, given)[text, : int(given.lengths[text])][of[text, word, : int(given.lengths[text])] == 0]
        change = total_variation(probabilities(made(ids[None]).logits)[0], before[text])
        assert torch.allclose(deleted[text, word], change, atol=1e-9)


def test_a_word_of_the_same_letters_in_other_subwords_is_another(transformers):
    merges, texts = [("f", "i"), ("l", "m"), ("fi", "lm"), ("Ġ", "film")], ["a film", "film a (film", "films", "a" * 40]
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *"aĠfilms(", *map("".join, merges)]  # SMALL's 17
    tokenizer = transformers.RobertaTokenizer(vocab={one: n for n, one in enumerate(pieces)}, merges=merges)
    made = tiny(transformers, "Roberta", pad_token_id=1, type_vocab_size=1, max_position_embeddings=50)
    corpus = corpus_in_subwords(corpus_of(texts=texts), tokenizer, 48, whole=True)
    (adapted := HuggingFaceClassifier(made, tokenizer)).read_words(corpus.vocabulary)
    plain = made(**tokenizer(texts, return_tensors="pt", padding=True)).logits
    assert torch.allclose(adapted(collate(corpus.test, np.arange(4))).logits, plain, atol=1e-9)
    assert [one.tokens[0] for one in corpus.test.instances] == ["a", "film ", "films", "a" * 16]


def test_outputs_are_brought_into_the_order_of_the_classes(transformers, tokenizer, given):
    config = transformers.BertConfig(id2label={0: "Better", 1: "WORSE"})
    assert order_of(config, ("wor se", "better")) == ([1, 0], [])
    taken = "The model's classes Better, WORSE are taken as 0, 1, by their order."
    assert order_of(config, ("0", "1")) == ([0, 1], [taken]) and order_of(config, ("-1", "1.0"))[0] == [0, 1]
    assert order_of(transformers.BertConfig(id2label={0: "LABEL_1", 1: "0"}), ("0.0", "1.0")) == ([1, 0], [])
    with pytest.raises(ValueError, match="the model's 2 classes are Better, WORSE, the texts' 2 'worse', bad; allowed"):
        order_of(config, ("'worse'", "bad"))
    turned = HuggingFaceClassifier(tiny(transformers), tokenizer)
    plain, turned.order = turned(given).logits, [2, 0, 1]
    assert torch.equal(turned(given).logits, plain[:, [2, 0, 1]])


@pytest.mark.parametrize(
    ("kind", "options"), [("Bert", {}), ("Roberta", {"type_vocab_size": 1}), ("DistilBert", DISTILBERT)]
)
def test_two_columns_are_a_pair_as_the_tokenizer_writes_it(transformers, tokenizer, tmp_path, kind, options):
    pairs = permutations([*filter(None, TEXTS[1:]), "it [SEP] was"], 2)
    rows = [f"{one},{other},{n % 3}" for n, (one, other) in enumerate(pairs)]
    (tmp_path / "pairs.csv").write_text("\n".join(["premise,hypothesis,label", *rows]))
    corpus = datasets.load(own_text(str(tmp_path / "pairs.csv"), "premise,hypothesis"), "quick")
    made = tiny(transformers, kind, max_position_embeddings=9, **options).float()  # most are cut
    (own,) = own_model(str(saved(tmp_path / "mine", made, tokenizer)), Run("planted"), corpus=corpus)
    given = collate(own.corpus.test, np.arange(len(own.corpus.test)))
    texts = zip(*(one.text.split(PAIR) for one in own.corpus.test.instances), strict=True)
    most = {"max_length": int(words_read(made)), "truncation": True, "padding": True}
    read = tokenizer(*map(list, texts), return_tensors="pt", **most)
    read = {name: value for name, value in read.items() if kind == "Bert" or name != "token_type_ids"}
    assert torch.allclose(own.model(given).logits, made(**read).logits, atol=1e-5)
    assert importance.leave_one_out(own.model, given)[0].count_nonzero() == given.mask[0].sum()


def test_the_audit_is_of_every_head_two_means_and_rollout(transformers, tokenizer, given):
    adapted = HuggingFaceClassifier(bert := tiny(transformers), tokenizer)
    own = Trained(OwnRun("", ""), adapted, corpus_in_subwords(corpus_of(), tokenizer, 510), "", (), 0)
    found = importance.leave_one_out_with_sign(adapted, given, adapted(given))
    arrays = {name: [one[real].numpy() for one, real in zip(of, given.mask, strict=True)] for name, of in found.items()}
    heads, others = audit([own], pd.DataFrame(arrays).add_prefix("leave_one_out_").assign(seed=0))
    (deleted, signed), arrays = found.values(), arrays["of_input"]
    logits, layers = by_hand(bert, ids := ids_of(adapted, given), inside(given))
    layers, before = torch.stack(layers)[:, :, :, 0].detach(), probabilities(logits)[:, None]
    masks = torch.where(torch.eye(ids.shape[1], dtype=torch.bool), SUBWORDS.index("[MASK]"), ids[:, None])
    after = probabilities(torch.stack([by_hand(bert, one, inside(given))[0] for one in masks.unbind(1)], dim=1))
    falls = (before - after).gather(2, before.argmax(dim=2, keepdim=True).expand(-1, ids.shape[1], 1)).squeeze(2)
    maps = {"mean of the last layer": layers[-1].mean(1), "mean of all layers": layers.mean((0, 2))}
    maps |= {f"layer {1 + layer}, head {1 + head}": layers[layer, :, head] for layer in (0, 1) for head in (0, 1)}
    found = pd.concat([heads, others]).set_index(["attention", "quantity"])["value"]
    assert len(heads) == 4 * 3 and len(others) == 3 * 6 and set(heads["layer"]) == {"layer 1", "layer 2"}
    for name, weights in maps.items():
        tops = ((weights * given.mask).argmax(dim=1) == deleted.argmax(dim=1))[[np.ptp(one) > 0 for one in arrays]]
        expected = [kendall_tau(weights, deleted, given.mask)[0], (weights * ~given.mask).sum(dim=1), tops.double()]
        if "head" not in name:
            opposite = (signed * falls).gather(1, (weights * given.mask).argmax(dim=1, keepdim=True)) < 0
            expected[1:1] = [kendall_tau(weights, total_variation(before, after), given.mask)[0], opposite.double()]
        names = [of for of in MAPS if "chance" not in of and (name, of) in found]
        assert [found[name, of] for of in names] == pytest.approx([float(value.nanmean()) for value in expected])
    assert all(table.empty for table in audit([replace(own, model=small.model())], heads))


SHAPES = [  # the kind of model, its options, the classes, the words that it reads, and what says how it attends
    ("Bert", {}, ("worse", "better"), 9, "head 1 of the last layer"),
    ("Roberta", {"pad_token_id": 1}, ("worse", "so so", "better"), 7, "mean of the last layer's heads"),
    ("DistilBert", DISTILBERT, ("worse", "so so", "better"), 9, "mean of the last layer's heads"),
]


@pytest.mark.parametrize(("kind", "options", "classes", "reads", "attention"), SHAPES)
def test_a_folder_and_the_docs_file_are_measured_end_to_end(
    transformers, tokenizer, tmp_path, monkeypatch, kind, options, classes, reads, attention
):
    monkeypatch.chdir(tmp_path)
    made = tiny(transformers, kind, num_labels=len(classes), max_position_embeddings=9, **options).bfloat16()
    saved(tmp_path / "mine", made, tokenizer)
    (tmp_path / "mine.py").write_text(of_docs(0).replace("my_bert", "mine"))
    (own,) = own_model("mine" + ".py" * (kind == "Bert"), Run("planted"), corpus=corpus_of(classes))
    known = own.corpus.vocabulary
    sizes = [sum(len(known.pieces[known.ids[word]]) for word in one.tokens) for one in own.corpus.test.instances]
    assert max(sizes) == reads - 2 > own.corpus.test.lengths.max() - (reads < 9) and own.run.attention == attention
    taken = f"{', '.join(f'LABEL_{k}' for k in range(len(classes)))} are taken as {', '.join(classes)}, by their order."
    notes = {f"The model's classes {taken}", f"{9 - reads + 1} texts of test were cut to {reads - 2} subwords."}
    notes |= {"The model's weights, saved in torch.bfloat16, are measured in torch.float32."}
    assert f"mine, a {kind}ForSequenceClassification. Its attention: {attention}, at" in own.corpus.notes[0]
    assert notes <= set(own.corpus.notes)
    assert all(map(torch.equal, own.model.parameters(), (then.float() for then in made.parameters())))
    quantities = [attention_weights, importance.quantity("loo", importance.leave_one_out)]
    quantities += [interventions.permutation_effect(10), interventions.substituted(10)]
    summary = summarise(correlate(measure_all([own], quantities), [("attention", "loo")])).set_index("quantity")
    assert summary.loc["kendall_tau_attention_vs_loo", "n"] == 4 and summary.loc["permutation", "n"] == 6
    with pytest.raises(ModelError, match="a Hugging Face classifier reads single texts here, and these have questions"):
        own_model("mine", Run("planted"), corpus=corpus_of(classes, query=("why",)))
