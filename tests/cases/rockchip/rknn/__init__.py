"""In the place of rknn-toolkit2."""
