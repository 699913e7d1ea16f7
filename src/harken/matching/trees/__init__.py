"""Search trees: `tree` asks property by property, `rapid` first by how many properties an event has."""
