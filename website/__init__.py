"""The site of the documentation: its pages, and the reference that is made from the code.

    make docs

puts the pages into ``build/pages``, and zensical makes ``build/site`` of them by ``mkdocs.yml``.
"""
