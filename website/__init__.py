"""The site of the documentation, which zensical builds from ``docs`` by ``mkdocs.yml``."""
