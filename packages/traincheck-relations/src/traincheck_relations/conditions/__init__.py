"""When a claim applies: facts about occasions, and finding those that separate."""
