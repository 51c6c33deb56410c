"""What is found in an embedding without labels, beside what labels and environments find.

The neighbours of this work look for components that nobody named: independent ones (ICA), rarely
active ones (sparse dictionaries, of which sparse autoencoders are the trained kind), those of
largest variance, log-posteriors of which few are near one (concept component analysis). No labels
enter them, so a component has to be *matched* to each concept afterwards, and a match chosen among
many flatters: it is chosen on one half and judged on the other. The book's page on the neighbours
says what each line of work promises.
"""

from .language import STATE_CONCEPTS, States, compare_states, language_states, summary
from .search import METHODS, Found, find, match
from .unmixing import unmix, unmixing_loss

__all__ = [
    "METHODS",
    "STATE_CONCEPTS",
    "Found",
    "States",
    "compare_states",
    "find",
    "language_states",
    "match",
    "summary",
    "unmix",
    "unmixing_loss",
]
