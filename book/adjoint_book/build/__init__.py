"""What builds and checks the site: the Sphinx extension, the indexes, the set-up cell."""
