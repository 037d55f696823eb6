"""The target `rknn`: a folder whose NPU segments Rockchip's compiler has compiled."""
