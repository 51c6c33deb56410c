"""How the book is built: pair the notebooks, execute the stale ones once, build the site.

``python -m tools.book book`` does all three; `make book` calls it. The steps live in
one module each, in the order in which they run: `project` (where things are), `pairs`,
`fingerprints`, `execution`, `pages` (what is written for the reader by a program),
`site`, which ends with `slides`; `pdf` prints what was built. `sphinx_assets` is the extension
through which everything that a page loads comes from the site itself.
"""
