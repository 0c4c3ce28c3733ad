"""Steps that create and change the schema. A released step never changes."""
