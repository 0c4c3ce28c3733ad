"""The protocol buffers of proto/, compiled by `make proto`."""
