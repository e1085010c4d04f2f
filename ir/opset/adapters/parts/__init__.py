"""What adapters of several operators are put together from; nothing here registers a step."""
