"""A pretrained Transformer below our own attention, on a tiny folder, against transformers itself."""

import sys
from copy import deepcopy
from dataclasses import replace
from os.path import relpath
from pathlib import Path

import numpy as np
import pytest
import torch
from small import deletions_are_shortened_texts

from lib import datasets
from lib.datasets import DataError, pretrained
from lib.datasets.batches import collate
from lib.datasets.corpus import END, PAD, START
from lib.datasets.pretrained import library
from lib.models.check_interface import check_interface
from lib.models.encoders import Pretrained
from lib.training import Run, train, untrained
from lib.training.fitting import adam, rise_and_fall
from lib.training.trained import entry_name
from papers.correlation import CorrelationSettings

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
FEW = (("epochs", 2), ("pretrained_rate", 1e-3))


@pytest.fixture(scope="module")
def folder(transformers, tmp_path_factory) -> str:
    """A BERT whose tokenizer cuts the words of planted reviews into letters, but for the cues."""
    letters = "abcdefghijklmnopqrstuvwxyz.,'"
    subwords = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{one}" for one in letters)]
    subwords += ["funny", "dull"]
    tokenizer = transformers.BertTokenizer(vocab={word: place for place, word in enumerate(subwords)})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = transformers.BertConfig(vocab_size=len(tokenizer), max_position_embeddings=90, **SIZES)
        model = transformers.BertModel(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
    made = tmp_path_factory.mktemp("models") / "tiny"
    model.save_pretrained(made)
    tokenizer.save_pretrained(made)
    return str(made)


@pytest.fixture(scope="module")
def run(folder, one_cache) -> Run:
    return Run(f"planted:subwords={folder}", folder, options=FEW)


@pytest.fixture(scope="module")
def trained(run):
    return train(run)


def test_the_states_are_those_of_transformers_and_whole_texts_are_cut_as_its_tokenizer_cuts_them(
    transformers, folder, trained
):
    model, tokenizer = (getattr(transformers, f"Auto{kind}").from_pretrained(folder) for kind in ("Model", "Tokenizer"))
    text, fresh = trained.corpus.test.instances[3], untrained(trained).model
    ids = tokenizer(text.text, return_tensors="pt")["input_ids"]
    assert tuple(tokenizer.convert_ids_to_tokens(ids[0]))[1:-1] == text.tokens[:88] and len(text.tokens) <= 88
    batch = collate(trained.corpus.test, np.array([3, 5]))
    inner = []
    with torch.no_grad():
        output = fresh(batch)
        states = model.eval()(ids).last_hidden_state[0]
        model.set_attn_implementation("eager")
        weights = model(ids, output_attentions=True).attentions
        fresh.encoder(output.embeddings, batch.lengths, inner)
    words = int(batch.lengths[0])
    assert torch.allclose(output.hidden[0, :words], states, atol=1e-5)
    for layer, own in zip(inner, weights, strict=True):
        assert torch.allclose(layer[0, :, :words, :words], own[0], atol=1e-5)
    check_interface(trained.model, collate(trained.corpus.test, np.arange(5)))
    assert batch.tokens[0, 0] == START and batch.tokens[0, words - 1] == END and not fresh.embedding.weight[PAD].any()


def test_it_learns_further_and_is_read_from_the_cache_and_a_frozen_one_stays(run, trained):
    assert all(map(torch.equal, train(run, say=pytest.fail).model.parameters(), trained.model.parameters()))
    before = dict(untrained(trained).model.named_parameters())
    moved = {name for name, now in trained.model.named_parameters() if not torch.equal(now, before[name])}
    assert moved >= {"embedding.weight", "decoder.weight", "encoder.transformer.encoder.layer.0.output.dense.weight"}
    frozen = train(replace(run, encoder=f"{run.encoder}:frozen", options=(("epochs", 2),)))
    still = {name for name, now in frozen.model.named_parameters() if torch.equal(now, before[name])}
    assert still == {name for name in before if name.startswith(("embedding.", "encoder."))}
    assert not any(module.training for module in frozen.model.train().encoder.modules())


def test_a_folder_with_other_weights_is_another_run(run, trained):
    weights, before = Path(run.encoder, "model.safetensors"), entry_name(run, trained.corpus)
    weights.write_bytes((content := weights.read_bytes())[:-1] + b"?")
    assert entry_name(run, trained.corpus) != before
    weights.write_bytes(content)
    assert entry_name(run, trained.corpus) == before


def test_states_of_a_frozen_encoder_are_computed_once_and_change_nothing(run, monkeypatch, tmp_path):
    of = replace(run, encoder=f"{run.encoder}:frozen", options=(("epochs", 2),))
    adversary = replace(of, variant="adversary", base=of, options=(("epochs", 1), ("trains", "attention")))
    passes = []
    monkeypatch.setattr(Pretrained, "forward", lambda *given, of=Pretrained.forward: passes.append(1) or of(*given))
    monkeypatch.setenv("CACHE_HOME", str(tmp_path / "kept"))
    kept, once = (train(of), train(adversary)), len(passes)
    monkeypatch.setenv("CACHE_HOME", str(tmp_path / "anew"))
    monkeypatch.setattr("lib.training.trained.MOST", 0)
    again = train(of), train(adversary)
    assert len(passes) > 4 * once and len(passes) - once > 3 * 1300 / 32, "each batch of each epoch"
    batch = collate(kept[0].corpus.test, np.arange(20))
    for one, two in zip(kept, again, strict=True):
        torch.testing.assert_close(one.model(batch).logits, two.model(batch).logits, rtol=0, atol=2e-3)
        torch.testing.assert_close(one.model(batch).attention, two.model(batch).attention, rtol=0, atol=2e-3)


def test_leave_one_out_reads_each_shortened_text(trained):
    deletions_are_shortened_texts(deepcopy(trained.model).double(), collate(trained.corpus.test, np.array([3, 5])))


def test_the_reasons_of_words_are_those_of_their_subwords(trained):
    plain = datasets.load("planted", "quick").test.instances
    for one, two in zip(plain, trained.corpus.test.instances, strict=True):
        words = ["".join(one.tokens[slice(*span)]) for span in one.rationale]
        found = ["".join(two.tokens[slice(*span)]).replace("##", "") for span in two.rationale or ()]
        assert found == words or (len(two.tokens) == 88 and all(map(str.startswith, words, found))), "or it is cut"


def test_learning_rates_rise_and_fall_and_are_of_their_own_below_the_attention(trained):
    optimizer = adam(trained.model, 0.01, 1e-3, True, False, 1e-4)
    names = {id(parameter): name.split(".")[0] for name, parameter in trained.model.named_parameters()}
    rooms = [{names[id(parameter)] for parameter in group["params"]} for group in optimizer.param_groups]
    assert rooms == [{"decoder"}, {"attention"}, {"embedding", "encoder"}]
    rise_and_fall(optimizer, 0.25, 7, 0)
    seen = []
    for _ in range(7):
        seen.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
    share = np.array([0.5, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6])
    np.testing.assert_allclose(seen, share[:, None] * [1e-3, 1e-3, 1e-4])


def test_what_does_not_fit_together_is_refused(folder, tmp_path):
    assert CorrelationSettings(encoders=[folder, "bilstm"]).dataset == f"planted:subwords={folder}"
    with pytest.raises(ValueError, match="read different subwords; allowed: one pretrained model at a time"):
        CorrelationSettings(encoders=[folder, "minilm"])
    with pytest.raises(ValueError, match="encoder is 'minilm'; allowed: bilstm, average"):
        Run("planted", "minilm")
    with pytest.raises(DataError, match="no pretrained model 'none/such': looked for .*; name a folder as save_"):
        pretrained.folder_of("none/such", tmp_path)
    assert pretrained.folder_of(relpath(folder, pretrained.files.PROJECT)).samefile(folder)


def test_without_transformers_it_is_said_how_to_get_it(monkeypatch):
    library.cache_clear()
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(DataError, match="needs transformers: pip install transformers"):
        library()
