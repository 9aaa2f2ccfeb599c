"""Exporters: results told to the services and tools that a team looks at anyway."""
