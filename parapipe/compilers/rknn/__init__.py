"""Rockchip's compiler, `rknn-toolkit2`: its table of rows, its worker."""
