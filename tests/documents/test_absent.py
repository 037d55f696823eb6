"""Why configurations are absent, as it is shown."""

from parapipe.documents.shown import absent_texts


def test_identical_processors_are_named_together_and_kinds_apart():
    texts = absent_texts(
        {
            "para-only": "the mapper found no use for it",
            "hybrid": "the mapper found no use for it",
            "npu0-alone": "npu0 cannot run 1 of 2 operators – npu0 computes in int8",
            "gpu-alone": "gpu cannot run 2 of 2 operators",
            "npu1-alone": "npu1 cannot run 1 of 2 operators – npu1 computes in int8",
        }
    )
    assert [*texts] == [
        "no para-only configuration: the mapper found no use for it",
        "no hybrid configuration: the mapper found no use for it",
        (
            "no npu0-alone or npu1-alone configuration: npu0 and npu1 cannot run 1 of 2 operators "
            "– they compute in int8"
        ),
        "no gpu-alone configuration: gpu cannot run 2 of 2 operators",
    ]
