"""The keywords of JSON Schema: one record per keyword, and the assertions that keywords are parsed to."""
