"""What Harken talks about: values, schemas, expressions, subscriptions and events. Frozen, pure, no I/O."""
