"""The formats of strings (``"format": "date"``) as regular languages.

:mod:`.table` has one record for each format: its name, its language, and in words how that differs from the
specification where the specification's language is not regular. The languages are built by the other files, one for
each family of formats: :mod:`.dates`, :mod:`.identifiers`, :mod:`.base64_text`, :mod:`.mail`, :mod:`.host_names` (by
:mod:`.idna_classes`), :mod:`.resource_names`, :mod:`.regex_patterns`.

To add a format, write its language in the file of its family and add one record to the table; its cases go to
``tests/frontends/json_schema/formats.txt``, and its name to ``docs/json-schema.md``.
"""
