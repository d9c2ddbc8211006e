"""Tools: functions that a model may call, the formats in which models write calls, and the loop that runs them."""
