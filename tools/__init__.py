"""How the book is built: no part of the library."""
