"""How the book is built: pair the notebooks, execute the stale ones once, build the site.

``python -m tools.book book`` does all three, by `pairs`, `execution` and `site`; `make book` calls
it.
"""
