"""How the book is built: pair the notebooks, execute the stale ones once, build the site.

``python -m tools.book book``, or `make book`, does all three: `pairs`, `execution`, `site`.
"""
