"""The messages of proto/. `make proto` compiles them."""
