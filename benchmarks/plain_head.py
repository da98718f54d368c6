"""python -m benchmarks.plain_head: MiniLM under the head of transformers, fine-tuned on SST as ours is.

Beside it the accuracy of ours, kept in reports/results. Some twenty minutes a seed on one core.
"""

import argparse

import pandas as pd
import torch

from lib.datasets import load
from lib.datasets.pretrained import folder_of, library
from lib.provenance import PROJECT
from lib.training.runs import FINE_TUNING

KEPT = PROJECT / "reports" / "results" / "correlation-sst@subwords=minilm.csv"


def accuracy(seed: int) -> float:
    """On test, after the epoch of the best accuracy on dev."""
    torch.manual_seed(seed)
    transformers = library()
    folder, corpus, size = folder_of("minilm"), load("sst", profile="paper"), FINE_TUNING["batch_size"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=FINE_TUNING["pretrained_rate"])
    steps = FINE_TUNING["epochs"] * -(-len(corpus.train) // size)
    warmup = round(FINE_TUNING["warmup"] * steps)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, warmup, steps)

    def batches(split, order):
        for some in torch.as_tensor(order).split(size):
            texts = [split.instances[one] for one in some.tolist()]
            given = tokenizer([text.text for text in texts], padding=True, truncation=True, return_tensors="pt")
            yield given, torch.tensor([text.label for text in texts])

    @torch.no_grad()
    def right(split):
        model.eval()
        found = [model(**given).logits.argmax(1) == labels for given, labels in batches(split, range(len(split)))]
        return torch.cat(found).double().mean().item()

    scores = []
    for _ in range(FINE_TUNING["epochs"]):
        model.train()
        for given, labels in batches(corpus.train, torch.randperm(len(corpus.train))):
            model(**given, labels=labels).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), FINE_TUNING["clip"])
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
        scores.append((right(corpus.dev), right(corpus.test)))
    return max(scores)[1]


def main() -> None:
    """Prints the accuracy of each seed, and that of ours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=int, nargs="*", default=[0, 1, 2])
    for seed in parser.parse_args().seeds:
        print(f"seed {seed}: {accuracy(seed):.4f} on test under transformers' own head", flush=True)
    ours = pd.read_csv(KEPT).query("quantity == 'accuracy' and encoder == 'minilm'")
    print(ours[["encoder", "attention", "seed", "value"]].to_string(index=False))


if __name__ == "__main__":
    main()
