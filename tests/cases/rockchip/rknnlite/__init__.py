"""In the place of rknn-toolkit-lite2."""
