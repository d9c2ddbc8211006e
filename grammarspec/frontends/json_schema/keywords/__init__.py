"""What each keyword is: how it is parsed, what it asks, how it fails, which subschemas it holds."""
