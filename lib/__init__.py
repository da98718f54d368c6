"""Is attention explanation? Models, attention, measures and interventions of five papers."""

import sys

# jsonschema, which Altair and nbformat import, would build a grammar of web addresses, 1.6 s of each process, that
# nothing here asks for; where it cannot be imported those addresses go unchecked.
sys.modules.setdefault("rfc3987_syntax", None)
