"""What SQLite and PostgreSQL do each in their own way."""
