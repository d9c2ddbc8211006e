"""Reports on ``.lark`` grammars: what is wrong with one, why a text does not belong to it, how its rules look.

A grammar goes through :mod:`.malformed` (what lark's loader refuses) and :mod:`.obstacles` (what else is refused), then
:mod:`.symbols`, :mod:`.conflicts` and :mod:`.collisions` look for what is taken and may still be a mistake;
:mod:`.check` puts their :mod:`.findings` together. :mod:`.naming` says how symbols are called. :mod:`.explanation` is
about texts, and :mod:`.railroads` draws.
"""
