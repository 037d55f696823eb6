"""Streams: a processor that runs several operators at once, in clusters of about equal time."""
