"""Tables of data frames: words to the left, numbers to the right, and no counter of rows where it says nothing."""

import re
from typing import Any

import bs4

NUMBER = re.compile(r"[-−+±~]?\s*[\d.,]+(e[-+]?\d+)?\s*%?|nan|none|<na>|–|-|", re.IGNORECASE)


def aligned(html: str) -> str:
    """pandas' own table with its columns aligned by what is in them; other HTML comes back as it was."""
    if 'class="dataframe"' not in html:
        return html
    soup = bs4.BeautifulSoup(html, "html.parser")
    for table in soup.find_all("table", class_="dataframe"):
        _align(table)
    return str(soup)


def _align(table: Any) -> None:
    table.attrs.pop("border", None)
    rows = table.select("tbody tr")
    if not rows:
        return
    bodies = [row.find_all("td") for row in rows]
    names = [row.find_all("th") for row in rows]
    heads = table.select("thead tr")
    if [" ".join(cell.get_text() for cell in name) for name in names] == [str(number) for number in range(len(rows))]:
        table["class"] = [*table.get("class", []), "counted"]
    for column in range(max(len(body) for body in bodies)):
        cells = [body[column] for body in bodies if column < len(body)]
        words = not all(NUMBER.fullmatch(cell.get_text().strip()) for cell in cells)
        for cell in cells:
            cell["class"] = "words" if words else "number"
            cell["dir"] = "auto"
        for head in heads:
            named = head.find_all("th")
            if words and len(named) == len(names[0]) + len(bodies[0]):
                named[len(names[0]) + column]["class"] = "words"
