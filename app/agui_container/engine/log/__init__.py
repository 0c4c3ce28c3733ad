"""The events of a run, in order, and the subscriptions that read them."""
