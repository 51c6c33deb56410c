"""What no paper defines: validation, files, how users' tables are read, intervals."""
