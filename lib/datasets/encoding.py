"""The text of a file whose encoding is not known: UTF-8, UTF-16 by its mark, else a guess that a reader can check."""

import codecs
import re
from pathlib import Path

from lib.datasets.files import DataError, sound

# What spreadsheet programs write where it is not UTF-8; a short text fits many of Python's encodings.
CODE_PAGES = [f"cp{number}" for number in (*range(1250, 1258), 932, 949)] + ["gb18030", "big5"]
USUAL, ITS_KIN = "cp1252", "cp1250"  # Western and Central European
BETWEEN = re.compile(rb'[\s",;]+')  # words; no byte within a sign of any encoding here
FEW = 0.02  # of a file's different words
# What words have where the encoding is wrong: signs or capitals among small letters, rows of accents, two scripts.
ODD = re.compile(
    r"[^\W\d_][¹³¿¡ª£¥¤¦§¬±¶¯][^\W\d_]|[^\W\d_]{3}[¹³]|[^\W\d_A-Za-z]\d|[a-z][À-ÖØ-ÞŒŠŸŽ]|[À-ÖØ-öø-ÿ]{3}"
    r"|[A-Za-z][\u0370-\u1dff\u2e80-\ud7af]|[\u0370-\u1dff\u2e80-\ud7af][A-Za-z]"
)


def decoded(path: Path, content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file, with a note where its encoding is a guess; DataError: none fits, or it holds a NUL."""
    encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return sound(content.decode(encoding), str(path)), ()
    except UnicodeDecodeError:
        encoding, shown = _guess(content)
    if not encoding:
        raise DataError(f"{path} is not UTF-8, nor in any encoding that is known here; save it as UTF-8")
    guess = f"{path.name} is not UTF-8. It was read as {encoding}, a guess from its bytes, with words such as {shown}"
    return sound(content.decode(encoding), str(path)), (f"{guess}: if that is wrong, save the file as UTF-8.",)


def _guess(content: bytes) -> tuple[str, str]:
    """The likely encoding of what is not UTF-8, "" where none fits; some words, with their other reading.

    Windows-1252 is held against charset_normalizer's guess by the words that differ, and taken unless these are odder
    or, in another guess, many and fine there: of a few names in English no statistics of letters can tell.
    """
    from charset_normalizer import from_bytes  # takes a moment, and few files need it

    foreign = b"\n".join(line for line in content.split(b"\n") if not line.isascii())[:1_000_000]
    best = from_bytes(foreign, cp_isolation=CODE_PAGES).best()
    if not best:
        return "", ""
    other = best.encoding if best.encoding != USUAL else ITS_KIN
    words = dict.fromkeys(word for word in BETWEEN.split(foreign) if not word.isascii())
    pairs = [(word.decode(USUAL, "replace"), word.decode(other, "replace")) for word in words]
    differing = [pair for pair in pairs if pair[0] != pair[1]]
    odd, odd_other = (sum(bool(ODD.search(pair[side])) for pair in differing) for side in (0, 1))
    few = len(differing) <= FEW * len(set(BETWEEN.split(content[:10_000_000]))) or 2 * odd_other > len(differing)
    fits, other_fits = ("\ufffd" not in content.decode(name, "replace") for name in (USUAL, other))
    usual = fits and (not other_fits or (odd <= odd_other and (few or best.encoding == USUAL)))
    chosen, second = (USUAL, other) if usual else (other, USUAL)
    cut = [[word.strip("|.")[:30] for word in pair[:: 1 if usual else -1]] for pair in (differing or pairs)[:3]]
    shown = [repr(one) + f" (in {second} {other!r})" * (one != other) for one, other in cut]
    return chosen if usual or other_fits else "", ", ".join(shown)
