"""Streams: operators that one processor runs several of at once, in clusters of about equal time."""
