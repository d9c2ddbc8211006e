"""Tools: functions that a model may call, and the formats in which models write the calls."""
