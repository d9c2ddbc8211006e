"""How values are spelled in the output: whitespace, escapes, numbers, quotation marks, names.

A schema says which values are allowed, and leaves open how their texts look. What it leaves open is chosen by the
options of :func:`grammarspec.json_schema`; they are checked and kept as a :class:`~.options.Spelling`. From it come the
nodes of the grammar that all schemas need: strings, numbers, punctuation, any value (:class:`~.json_text.JsonText`),
made once for each spelling and copied into a builder for each schema (:func:`~.prelude.prelude`).
"""
