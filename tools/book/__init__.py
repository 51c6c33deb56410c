"""How the book is built: pair the notebooks, execute the stale ones once, build the site.

``python -m tools.book book`` does all three; `make book` calls it. The steps, in order: `project`
(where things are), `pairs`, `fingerprints`, `execution`, `pages` (what a program writes for the
reader), `site` (through the extension `sphinx_assets`), `slides`. `pdf` prints the site in a
`browser`; `editions` writes the chapters for a course.
"""
