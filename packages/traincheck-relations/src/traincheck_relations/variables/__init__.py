"""How variables change, stay, and are held; alone, in a model, and across ranks."""
