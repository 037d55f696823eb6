"""The networks of which the pages on fronts, memory and streams tell.

One list for all of them, since a row takes minutes to hours. models.md has every model of the zoo.
"""

NETWORKS = (
    "alexnet", "bert-base", "bevformer", "densenet-121", "googlenet", "gpt:12",
    "inception-resnet-v2", "inception-v3", "inception-v4", "mobilenet-v1", "mobilenet-v2", "petr",
    "resnet-50", "squeezenet", "unet", "vit-b16", "yolo-pan",
)  # fmt: skip
