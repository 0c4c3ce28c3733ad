"""Many runs: the door, admission, queues, threads, views, health and drain. Independent of transports.

Rule: a run does not depend on a request; a request registers it and reads its log.
"""
