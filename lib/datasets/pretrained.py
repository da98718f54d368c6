"""Pretrained models in Hugging Face folders: weights as safetensors; nothing is downloaded, and no code of theirs runs.

transformers is imported here alone, when the first folder is read.
"""

from functools import cache, lru_cache
from math import inf
from pathlib import Path
from types import ModuleType
from warnings import catch_warnings

import torch
from torch import Tensor, nn

from lib.datasets import files
from lib.datasets.files import DataError

KNOWN = ("minilm",)  # those of tools.fetch; any other is named by its path, with a slash
RECORDED = "recorded"  # the name of our attention function among those of transformers
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model")


def is_pretrained(encoder: str) -> bool:
    """Whether an encoder's name is that of a pretrained model: a known one, or the path of a folder."""
    return encoder.partition(":")[0] in KNOWN or "/" in encoder


@cache
def library() -> ModuleType:
    """The package transformers, which knows our attention function from now on; DataError: it is not installed."""
    try:
        with catch_warnings(action="ignore"):  # of progress bars that a notebook cannot draw
            import transformers
            from transformers.masking_utils import AttentionMaskInterface, eager_mask
            from transformers.modeling_utils import AttentionInterface
    except ImportError as error:
        raise DataError(f"a pretrained model needs transformers: pip install transformers ({error})") from None
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()  # else it lists the weights of heads that are not needed
    AttentionInterface.register(RECORDED, recorded_attention)
    AttentionMaskInterface.register(RECORDED, eager_mask)
    return transformers


def recorded_attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, recorder=None, **options):
    """The "eager" attention function of transformers, with `recorder`.

    To one that is a list the weights of each layer are added, (batch, head, word, word).
    """
    key, value = (part.repeat_interleave(query.shape[1] // part.shape[1], dim=1) for part in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    scores = scores if attention_mask is None else scores + attention_mask
    weights = nn.functional.dropout(scores.softmax(dim=-1), p=dropout, training=module.training)
    return attended(recorder, scores, weights, value).transpose(1, 2).contiguous(), weights


def attended(recorder, scores: Tensor, weights: Tensor, value: Tensor) -> Tensor:
    """The heads' output (batch, head, word, size), as a recorder with `attend` gives it; a list gets the weights."""
    if isinstance(recorder, list):
        recorder.append(weights)
    return recorder.attend(scores, weights, value) if hasattr(recorder, "attend") else weights @ value


def expose(model: nn.Module) -> None:
    """From now on a forward pass takes the option `recorder`; in DeBERTa, which has no such option, by hooks."""
    model.set_attn_implementation(RECORDED)
    parts = [part for part in model.modules() if type(part).__name__ == "DisentangledSelfAttention"]
    parts = [part for part in parts if hasattr(part, "value_proj")]  # version 2 or 3
    if not parts or getattr(model, "is_exposed", False):
        return
    model.is_exposed, seen = True, {}  # what hooks have seen in one forward pass

    def begin(module, args, options):
        seen["recorder"] = options.get("recorder")

    def record(module, args, output):
        weights, value, recorder = seen.pop("weights"), seen.pop("value"), seen.get("recorder")
        if recorder is None:
            return output
        value = value.unflatten(2, (weights.shape[1], -1)).transpose(1, 2)
        scores = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()  # up to a constant in each row
        return attended(recorder, scores, weights, value).transpose(1, 2).flatten(2), weights

    model.register_forward_pre_hook(begin, with_kwargs=True)
    model.register_forward_hook(lambda *_: seen.clear(), always_call=True)
    for part in parts:
        part.value_proj.register_forward_hook(lambda module, args, output: seen.update(value=output))
        part.dropout.register_forward_hook(lambda module, args, output: seen.update(weights=output))
        part.register_forward_hook(record)


# --- folders


def folder_of(name: str, data_home: str | Path | None = None) -> Path:
    """The folder of a pretrained model, by its path (`lib.datasets.files.places_of`) or its name in a home of data.

    DataError: there is none; it lacks the configuration, the tokenizer, or weights as safetensors; or it asks to run
    code of its own.
    """
    try:
        folder = files.find(name, data_home)
    except DataError:
        looked = ", ".join(dict.fromkeys(map(str, files.places_of(name, data_home))))
        how = f"python -m tools.fetch {name}" if name in KNOWN else "name a folder as save_pretrained writes it"
        raise DataError(f"there is no pretrained model {name!r}: looked for {looked}; {how}") from None
    if not (folder / "config.json").is_file():
        raise DataError(f"{folder} has no config.json; a pretrained model is a folder as save_pretrained writes it")
    for path in (folder / name for name in ("config.json", "tokenizer_config.json", WEIGHTS[1])):
        refuse_code(path) if path.is_file() else None
    if not any((folder / weights).is_file() for weights in WEIGHTS):
        pickled = sorted(path.name for path in folder.glob("*.bin")) + sorted(path.name for path in folder.glob("*.pt"))
        seen = f"only {pickled[0]}, a pickle, which can run code" if pickled else "no weights"
        raise DataError(f"{folder} has {seen}; allowed: model.safetensors, as save_pretrained writes it")
    if not any((folder / tokenizer).is_file() for tokenizer in TOKENIZERS):
        raise DataError(f"{folder} has no tokenizer.json; save the tokenizer too: tokenizer.save_pretrained")
    return folder


def refuse_code(path: Path) -> None:
    """Raises DataError where a configuration is damaged, asks for code of its own, or names pickles."""
    about = files.record_of(files.decode(files.read_bytes(path), str(path)), str(path), "it must hold an object")
    for name, value in about.items():
        files_named = value.values() if name == "weight_map" and isinstance(value, dict) else ()
        pickled = [file for file in files_named if not str(file).endswith(".safetensors")]
        if name == "auto_map" or ("attn_implementation" in name and "/" in str(value)) or pickled:
            allowed = "allowed: a model that transformers has itself, in safetensors, without that entry"
            raise DataError(f"{path} asks to run code of its own ({name}), which is refused; {allowed}")


def read(kind: str, folder: Path, **options):
    """What transformers' class of that name reads from a folder; DataError with its reason where it cannot."""
    safely = {"local_files_only": True, "trust_remote_code": False}
    try:
        return getattr(library(), kind).from_pretrained(folder, **safely, **options)
    except Exception as error:  # those of transformers, tokenizers and safetensors have no common base
        why = " ".join(str(error).split())[:200]
        raise DataError(f"transformers cannot read {folder} ({kind}): {why}") from None


def classifier_of(folder: Path) -> nn.Module:
    """The sequence classifier of a folder; DataError where it is another model, or a part of it was not trained."""
    options = {"use_safetensors": True, "output_loading_info": True, "ignore_mismatched_sizes": True}
    model, info = read("AutoModelForSequenceClassification", folder, **options)
    too_many = [name for name in info["unexpected_keys"] if ".layer" in name]
    wrong = sorted([*info["missing_keys"], *(name for name, *_ in info["mismatched_keys"]), *too_many])
    if wrong:
        saved, kind = ", ".join(read("AutoConfig", folder).architectures or ["?"]), type(model).__name__
        seen = f"{folder.name}, saved as {saved}, is no trained sequence classifier ({kind})"
        raise DataError(f"{seen}: {len(wrong)} weights are missing, too many, or of another shape, first {wrong[0]}")
    return model


@lru_cache(maxsize=2)
def tokenizer_of(folder: Path):
    """The tokenizer of a folder."""
    return read("AutoTokenizer", folder)


def encoder_of(folder: Path) -> nn.Module:
    """A pretrained Transformer without its embedding table and its pooler."""
    expose(model := whole_model(folder).float())
    model.set_input_embeddings(nn.Identity())
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model


def whole_model(folder: Path) -> nn.Module:
    """The Transformer of a folder, without a head."""
    return read("AutoModel", folder, use_safetensors=True)


def most_words(folder: Path) -> int:
    """The most words of a text that a pretrained model reads, start and end included."""
    with torch.device("meta"):  # its shapes alone
        model = library().AutoModel.from_config(read("AutoConfig", folder))
    return int(min(tokenizer_of(folder).model_max_length, words_read(model)))


def words_read(model: nn.Module) -> float:
    """The most words of a text, start and end included: RoBERTa and its like begin to count behind the padding's id."""
    for name, table in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(table, nn.Embedding):
            return table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
    return getattr(model.config, "max_position_embeddings", None) or inf
