"""Names of measured quantities, those of data/published.csv: their units, and how a reader reads them."""

import re

import pandas as pd

RUN_COLUMNS = ("dataset", "encoder", "attention", "projection", "variant", "layers")

UNITS = (  # the first pattern that is found in a name decides
    (r"_significant$|_p$", "fraction"),
    (r"_count$|^extra_|_items$", "items"),
    (r"_js$", "nats"),
    (r"^kendall_tau", "tau-b"),
    (r"entropy_of|normalized_entropy|attention_entropy", "fraction"),
    (r"jsd|entropy|mutual_information|loss", "nats"),
    (r"^length|average_length|support$", "tokens"),
    (r"flip|removed|^top_|^optimal_|^eraser_", "fraction"),
    (r"accuracy|f1|auc|tvd|probability|change_of_p|max_attention|rationale|support|permut", "fraction"),
)
WORDS = {
    "attention": "attention",
    "attention_weights": "attention",
    "gradient_times_input": "gradient × input",
    "gradient_of_input": "gradient",
    "gradient_of_hidden": "gradient of hidden states",
    "leave_one_out_of_input": "leave-one-out",
    "leave_one_out_of_hidden": "leave-one-out of hidden states",
    "entropy_of_gradient_of_input": "entropy of the gradient",
    "entropy_of_leave_one_out_of_input": "entropy of leave-one-out",
    "entropy_of_input_to_hidden_importance": "entropy of the inputs' importance to a hidden state",
    "attention_support": "tokens with weight",
    "attention_support_share": "tokens with weight, share of the text",
    "rationale_support_precision": "precision of the support",
    "rationale_support_recall": "recall of the support",
    "rationale_support_chance": "precision of the whole text",
    "inner_averaged": "inner attention, averaged",
    "inner_rollout": "inner attention, rollout",
    "transformer": "Transformer",
    "f1": "F1",
    "auc": "AUC",
    "jsd": "JSD",
    "tvd": "TVD",
    "bilstm": "BiLSTM",
    "mlm": "MLM",
    "f1_uniform": "F1 with uniform attention",
    "f1_permuted": "F1 with permuted attention",
    "f1_drop_uniform": "change of F1 with uniform attention",
    "f1_drop_permuted": "change of F1 with permuted attention",
    "mutual_information_most_frequent": "mutual information, most frequent words",
    "mutual_information_random_sample": "mutual information, random sample of words",
    "token_probability_mean": "token probability",
    "flan-rnn": "FLAN-rnn",
    "flan-conv": "FLAN-conv",
    "flan-noenc": "FLAN-noenc",
    "han-rnn": "HAN-rnn",
    "han-conv": "HAN-conv",
    "han-noenc": "HAN-noenc",
    "product": "gradient × attention",
    "first_order": "first-order effect",
    "fewest": "fewest possible",
    "authors_code": "authors' code",
    "flip_both": "both flip the decision",
    "flip_top_only": "only the top item flips it",
    "flip_random_only": "only another item flips it",
    "flip_neither": "neither flips it",
    "removed_fraction": "items removed, fraction",
    "removed_mass": "attention removed",
}
PAPERS = {
    "jain2019": "Jain & Wallace 2019",
    "wiegreffe2019": "Wiegreffe & Pinter 2019",
    "serrano2019": "Serrano & Smith 2019",
    "tutek2020": "Tutek & Šnajder 2020",
    "meister2021": "Meister et al. 2021",
}


def unit(quantity: str) -> str:
    """The unit of a quantity: fraction, nats, tau-b or tokens; "1" for a name that no rule knows."""
    return next((unit for pattern, unit in UNITS if re.search(pattern, quantity)), "1")


def tau_name(pair: tuple[str, str]) -> str:
    """("attention", "gradient_times_input") -> "kendall_tau_attention_vs_gradient_times_input".

    The column of the weights, `attention_weights`, is called "attention" in the name, as in published.csv.
    """
    first, second = ("attention" if name == "attention_weights" else name for name in pair)
    return f"kendall_tau_{first}_vs_{second}"


def readable(name: str) -> str:
    """A quantity, or a part of a model, for a reader: "attention / leave-one-out"."""
    if name.startswith("rationale_average_precision_"):
        return f"average precision of {readable(name.removeprefix('rationale_average_precision_'))}"
    if name.endswith("_significant"):
        return f"{readable(name.removesuffix('_significant'))}, share with p ≤ .05"
    if name.startswith("kendall_tau_") and "_vs_" in name:
        return " / ".join(readable(side) for side in name.removeprefix("kendall_tau_").split("_vs_"))
    return WORDS.get(name) or " ".join(WORDS.get(word, word) for word in name.split("_"))


def of_encoders(frame: pd.DataFrame) -> list[str]:
    """Of attention and layers those columns that follow from the encoder: they vary, but not for one encoder."""
    if "encoder" not in frame:
        return []
    named = [name for name in ("attention", "layers") if name in frame and frame[name].nunique() > 1]
    return [name for name in named if frame.groupby("encoder")[name].nunique().max() == 1]


def said_of_encoders(frame: pd.DataFrame) -> str:
    """What `of_encoders` are, once: "BiLSTM: additive, 1 layer; Transformer: dot, 2 layers"."""
    names = of_encoders(frame)
    said = {}
    for encoder, rows in frame.groupby("encoder", sort=False) if names else ():
        parts = {name: str(rows[name].iloc[0]) for name in names}
        if parts.get("layers"):  # none of a model of one's own
            parts["layers"] += " layer" if parts["layers"] == "1" else " layers"
        said[readable(str(encoder))] = ", ".join(map(readable, filter(None, parts.values())))
    return "; ".join(f"{encoder}: {parts}" for encoder, parts in said.items() if parts)
