"""Tasks with a question: their files, the model that answers, and every measure of it against brute force."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import planned
import pytest
import small
import torch

from lib import datasets, importance, interventions
from lib.analysis import baseline
from lib.analysis.baseline import words
from lib.datasets import DataError
from lib.datasets.batches import Batch, batches, collate
from lib.datasets.corpus import Instance, Split, Vocabulary
from lib.importance import deletions
from lib.importance.deletions import logits_without_each_token
from lib.metrics import probabilities, total_variation
from lib.models import QUESTION_ENCODERS, QuestionClassifier
from lib.training import Run

LENGTHS, ASKED, CLASSES = (5, 1, 2, 9, 7), (1, 4, 2, 6, 1), 4
KINDS = [(encoder, attention) for encoder in QUESTION_ENCODERS for attention in ("additive", "dot")]


def split(seed=0) -> Split:
    """Random texts with random questions."""
    random, instances = np.random.default_rng(seed), []
    for number, (length, asked) in enumerate(zip(LENGTHS, ASKED, strict=True)):
        tokens, query = (tuple(random.choice(small.WORDS, size)) for size in (length, asked))
        instances.append(Instance(f"{number}", "", tokens, 0, query=query))
    return Split("test", tuple(instances), Vocabulary.of([small.WORDS]))


def batch(seed=0) -> Batch:
    return collate(split(seed), np.arange(len(LENGTHS)))


def model(encoder="bilstm", attention="additive", seed=0) -> QuestionClassifier:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        vectors = torch.randn(len(small.WORDS) + 4, 10)
        made = QuestionClassifier(vectors, encoder, attention, outputs=CLASSES, hidden_size=8)
        for parameter in (*made.attention.parameters(), made.affine_text.weight, made.decoder.weight):
            torch.nn.init.normal_(parameter, std=1.5)
    return made.double().eval()


def by_hand(tested: QuestionClassifier, given: Batch, row: int, attention=None) -> tuple[torch.Tensor, torch.Tensor]:
    """(logits, attention) of one text, word by word and without a batch, from the formulas of the paper."""
    length, asked = int(given.lengths[row]), int(given.query_mask[row].sum()) + 2
    states = tested.encoder(tested.embedding(given.tokens[[row], :length]), torch.tensor([length]))[0]
    query_states = tested.query_encoder(tested.query_embedding(given.query[[row], :asked]), torch.tensor([asked]))[0]
    whole = {
        "bilstm": lambda: torch.cat([query_states[-1, :4], query_states[0, 4:]]),
        "average": lambda: query_states.mean(dim=0),
        "conv": lambda: query_states[1:-1].max(dim=0).values,
    }
    query = whole[next(name for name, (kind, _) in QUESTION_ENCODERS.items() if type(tested.encoder) is kind)]()
    if attention is None:
        scorer = tested.attention
        scores = [state @ query / len(state) ** 0.5 for state in states[1:-1]]
        if list(scorer.parameters()):
            scores = [scorer.context((scorer.affine(s) + scorer.affine_query(query)).tanh())[0] for s in states[1:-1]]
        attention = torch.stack(scores).softmax(dim=0)
    context = sum(weight * state for weight, state in zip(attention, states[1:-1], strict=True))
    return tested.decoder((tested.affine_text(context) + tested.affine_query(query)).tanh()), attention


@pytest.mark.parametrize(("encoder", "attention"), KINDS)
def test_the_model_is_the_formula_whatever_the_batch(encoder, attention):
    tested, given = model(encoder, attention), batch()
    output = tested(given)
    for row in range(len(given)):
        logits, weights = by_hand(tested, given, row)
        torch.testing.assert_close(output.logits[row], logits, rtol=0, atol=1e-10)
        torch.testing.assert_close(output.attention[row][given.mask[row]], weights, rtol=0, atol=1e-10)
        torch.testing.assert_close(tested(given.rows(torch.tensor([row]))).logits[0], logits, rtol=0, atol=1e-10)
    assert torch.equal(tested(given, attention=output.attention).logits, output.logits)
    draws = torch.rand(len(given), 3, given.mask.shape[1], dtype=torch.float64) * given.mask[:, None]
    draws = draws / draws.sum(dim=-1, keepdim=True)
    logits = tested.read_out(output, draws)
    for row, draw in product(range(len(given)), range(3)):
        expected, _ = by_hand(tested, given, row, draws[row, draw][given.mask[row]])
        torch.testing.assert_close(logits[row, draw], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("encoder", "attention"), KINDS)
def test_leaving_a_token_out_asks_the_same_question_of_the_shorter_text(encoder, attention, monkeypatch):
    tested, given = model(encoder, attention), batch()
    without = logits_without_each_token(tested, given)
    for name in ("ROWS", "PAIRS"):
        monkeypatch.setattr(deletions, name, 12)
    torch.testing.assert_close(logits_without_each_token(tested, given), without, rtol=0, atol=1e-9, equal_nan=True)
    assert torch.equal(without.isnan().any(dim=-1), ~given.mask)
    for row, place in given.mask.nonzero().tolist():
        if given.lengths[row] == 3:
            query = tested.encode_query(given.rows(torch.tensor([row])))
            expected = tested.decoder((tested.affine_text.bias + tested.affine_query(query)).tanh())[0]
        else:
            shorter, asked = small.shortened_by_hand(given, row, place), given.rows(torch.tensor([row]))
            expected, _ = by_hand(tested, replace(shorter, query=asked.query, query_mask=asked.query_mask), 0)
        torch.testing.assert_close(without[row, place], expected, rtol=0, atol=1e-9)


def test_the_gradient_is_of_the_predicted_answer_alone():
    tested, given = model(), batch()
    output = tested(given, attention=tested(given).attention.detach())
    (slope,) = torch.autograd.grad(probabilities(output.logits).amax(dim=1).sum(), output.embeddings)
    expected = (slope * output.embeddings).sum(dim=-1).abs().masked_fill(~given.mask, 0)
    torch.testing.assert_close(importance.gradient_times_input(tested, given), expected, rtol=0, atol=1e-10)


def test_permutations_and_the_adversary_move_predictions_as_the_read_out_says():
    tested, given = model(), batch()
    with torch.no_grad():
        output = tested(given)
        drawn = interventions.permuted(tested, output, draws=400, seed=0)
        weights = output.attention[0][given.mask[0]]  # of five tokens: no draw is of another than these orders
        orders = [by_hand(tested, given, 0, weights[list(order)])[0] for order in permutations(range(len(weights)))]
        apart = torch.cdist(probabilities(drawn[0]), probabilities(torch.stack(orders)), p=1)
        assert apart.min(dim=1).values.max() < 1e-8 and len(apart.argmin(dim=1).unique()) > 100
        attention, jsd = interventions.adversarial_attention(tested, output, 0.2, "gradient", steps=60)
        moved = total_variation(probabilities(tested.read_out(output, attention)), probabilities(output.logits))
    assert 0.1 < moved.max() <= 0.2 and jsd.max() > 0.05 and jsd[1] == 0  # the second has one token
    with pytest.raises(ValueError, match="use method='gradient'"):
        interventions.adversarial_attention(tested, output, 0.01, "exact")
    with pytest.raises(ValueError, match="answers questions, and the batch has none"):
        tested(small.batch())


OF_PAIRS = {"classes": ["entailment", "neutral", "contradiction"]}
PLACES = ("kitchen", "garden", "office", "hallway")


def story(number: int, **changed) -> dict:
    """Two facts and a question that the second answers; the places and names go round."""
    first, second = PLACES[number % 4], PLACES[(number // 4 + number) % 4]
    facts = [f"Mary moved to the {first}.", f"John went to the {second}."]
    return {"context": facts, "question": "Where is John?", "answer": second, "supporting": [1]} | changed


def test_stories_are_joined_their_facts_are_the_rationale_and_any_word_may_answer(tmp_path):
    train = [story(number) for number in range(40)]
    small.dataset(tmp_path, "babi1", {"title": "Stories"}, train=train, test=[*train[:4], story(0, answer="Mars")])
    corpus = datasets.load("babi1", data_home=tmp_path)
    one = corpus.test.instances[0]
    assert " ".join(one.tokens) == "mary moved to the kitchen . john went to the kitchen"
    assert [one.tokens[start:end] for start, end in one.rationale] == [("john", "went", "to", "the", "kitchen")]
    assert one.query == ("where", "is", "john", "?") and corpus.classes[one.label] == "kitchen"
    assert set(corpus.classes) == set(corpus.vocabulary.words[4:])
    assert [len(part) for part in corpus.splits] == [34, 6, 4]
    assert "1 of 5 texts of test were left out: none that may answer does." in corpus.notes
    assert next(batches(corpus.test, 4)).query_mask.sum(dim=1).tolist() == [4] * 4
    other = [story(number, question="Where is Mary?") for number in range(40)]
    small.dataset(tmp_path, "babi1", {"title": "Stories"}, train=other, test=train[:4])
    assert datasets.load("babi1", data_home=tmp_path).checksum != corpus.checksum


def test_a_bad_record_is_named(tmp_path):
    small.dataset(tmp_path, "babi1", {}, train=[story(1, answer=None)], test=[])
    with pytest.raises(DataError, match="test.jsonl.gz is empty"):
        datasets.load("babi1", data_home=tmp_path)
    small.dataset(tmp_path, "babi1", {}, test=[story(1)])
    with pytest.raises(DataError, match="line 1: 'answer' is None"):
        datasets.load("babi1", data_home=tmp_path)


def test_what_does_not_answer_questions_is_refused():
    with pytest.raises(ValueError, match="transformer on snli: encoder is 'transformer'; allowed: bilstm"):
        Run("snli", "transformer")
    with pytest.raises(ValueError, match="'snli' asks questions, which only the models of 'correlation' answer"):
        planned.runs("sparsity", "snli")


def test_the_shared_files_have_the_published_sizes(data_home):
    corpus = datasets.load("babi3", data_home=data_home)
    assert [len(part) for part in corpus.splits] == [850, 150, 1_000] and len(corpus.vocabulary) == 36 + 4
    snli = datasets.spec("snli").rows(data_home / "snli", {}, [])
    assert [len(rows) for rows in snli.values()] == [23_530, 9_842, 9_824]


def test_card_and_baseline_know_the_question_from_the_text(tmp_path):
    pairs = [("he sleeps", "he rests", 0), ("he sleeps", "he runs", 1), ("he sleeps", "a dog barks", 2)] * 6
    records = [{"premise": text, "hypothesis": asked, "label": label} for text, asked, label in pairs]
    other = [{"premise": text, "hypothesis": f"{asked} too", "label": label} for text, asked, label in pairs]
    empty = {"premise": "he sleeps", "hypothesis": " ", "label": 0}
    small.dataset(tmp_path, "snli", OF_PAIRS, train=[*records, empty], dev=other, test=records)
    corpus = datasets.load("snli", data_home=tmp_path)
    assert "1 of 19 texts of train were left out because they have no tokens." in corpus.notes
    assert datasets.card(corpus).loc["texts that occur in train too"].to_dict() == {"train": 18, "dev": 0, "test": 18}
    answers = baseline(corpus)
    assert (answers["prediction"] == answers["label"]).all()  # by the hypothesis: the premise is always the same
    assert words(corpus.train.instances[0]) == ("he", "sleeps", "? he", "? rests")
