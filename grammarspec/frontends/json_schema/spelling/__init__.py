"""How values are spelled: whitespace, escapes, numbers, in JSON and in notations near it."""
