"""The runs of this process: their registry, their queues, their subscriptions and the search for them."""
