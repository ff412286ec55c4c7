"""What a user begins with: files that `lcd new` writes, each of which runs as it is."""
