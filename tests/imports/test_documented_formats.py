"""Formats of tools that are not installed here, as their documents and sources describe them.

No tool wrote these files: the small network's layers stand in them.
"""

import json

import pytest

import parapipe
from parapipe.errors import ProfilingError
from parapipe.imports.matching import match_layers
from parapipe.imports.registry import read_tool_profile

TENSORRT = [
    {"count": 100},
    {"name": "Reformatting CopyNode for Input Tensor 0 to conv1 + relu1", "timeMs": 1,
     "averageMs": 0.01, "medianMs": 0.01, "percentage": 1},
    {"name": "conv1 + relu1", "timeMs": 10, "averageMs": 0.1, "percentage": 10},
    {"name": "left1 + left2 || right1 + right2", "timeMs": 20, "averageMs": 0.2, "percentage": 20},
    {"name": "left3", "timeMs": 30, "averageMs": 0.3, "percentage": 30},
    {"name": "{ForeignNode[fc...prob]}", "timeMs": 39, "averageMs": 0.39, "percentage": 39},
]  # fmt: skip
TFLITE = [
    ("CONV_2D", 0.1, "[relu1;norm;conv1]:0"),
    ("CONV_2D", 0.2, "[left2;left1]:1"),
    ("CONV_2D", 0.3, "[left3]:2"),
    ("CONV_2D", 0.4, "[right2;right1]:3"),
    ("CONCATENATION", 0.05, "[join]:4"),
    ("FULLY_CONNECTED", 0.5, "[fc]:5"),
    ("SOFTMAX", 0.01, "[Identity]:6"),
]


def tflite_text():
    columns = ["[node type]", "[first]", "[avg ms]", "[%]", "[cdf%]", "[mem KB]", "[times called]"]
    rows = ["\t" + "\t".join(f"{word:>16}" for word in columns) + "\t[Name]"]
    for kind, mean, name in TFLITE:
        cells = [kind, "1.000", f"{mean:.3f}", "1.000%", "1.000%", "0.000", "1"]
        rows.append("\t" + "\t".join(f"{cell:>16}" for cell in cells) + f"\t{name}")
    return tflite_table(rows)


def tflite_csv():
    rows = ["node type, first, avg_ms, %, cdf%, mem KB, times called, name"]
    rows += [f"{kind}, 1, {mean}, 1%, 1%, 0, 1, {name}" for kind, mean, name in TFLITE]
    return tflite_table(rows)


def tflite_table(rows):
    rule = "=" * 30
    return "\n".join([
        "Inference timings in us: Init: 178, Warmup (avg): 1600, Inference (avg): 1570.5",
        "Profiling Info for Benchmark Initialization:",
        f"{rule} Run Order {rule}", rows[0], rows[1].replace("CONV_2D", "AllocateTensors"), "",
        "Operator-wise Profiling Info for Regular Benchmark Runs:",
        f"{rule} Run Order {rule}", *rows, "",
        f"{rule} Top by Computation Time {rule}", *rows, "",
    ])  # fmt: skip


RKNN = """\
I RKNN: [05:07:06.566] ---------------------------------------------------------------
                         Network Layer Information Table
---------------------------------------------------------------
ID   OpType        DataType Target InputShape                  OutputShape   Cycles(DDR/NPU/Total) \
Time(us) MacUsage(%) WorkLoad(0/1/2) RW(KB) FullName
---------------------------------------------------------------
1    InputOperator INT8     CPU    \\                            (1,3,16,16)   0/0/0   5   \\   \
0.0%/0.0%/0.0% 0 InputOperator:data
2    ConvRelu      INT8     NPU    (1,3,16,16),(8,3,3,3),(8)    (1,8,16,16)   1/2/2   100 1.0 \
100.0%/0.0%/0.0% 3 Conv:conv1
3    ConvRelu      INT8     NPU    (1,8,16,16),(8,8,1,1),(8)    (1,8,16,16)   1/2/2   200 1.0 \
100.0%/0.0%/0.0% 3 Conv:left1
4    Conv          INT8     NPU    (1,8,16,16),(8,8,3,3),(8)    (1,8,16,16)   1/2/2   300 1.0 \
100.0%/0.0%/0.0% 3 Conv:left3
5    ConvRelu      INT8     NPU    (1,8,16,16),(8,8,1,1),(8)    (1,8,16,16)   1/2/2   400 1.0 \
100.0%/0.0%/0.0% 3 Conv:right1
6    Concat        INT8     NPU    (1,8,16,16),(1,8,16,16)      (1,16,16,16)  0/0/0   50  \\ \
100.0%/0.0%/0.0% 3 Concat:join
7    Conv          INT8     NPU    (1,4096,1,1),(10,4096,1,1)   (1,10,1,1)    1/2/2   500 1.0 \
100.0%/0.0%/0.0% 3 Conv:fc
8    Softmax       INT8     CPU    (1,10)                       (1,10)        0/0/0   15  \\ \
0.0%/0.0%/0.0% 3 Softmax:prob
---------------------------------------------------------------
Total Operator Elapsed Per Frame Time(us): 1570
"""
RKNN_1 = """\
Layer ID    Name                                         Operator            Uid       Time(us)
0           conv1_RKNN_mark_perm_60_0                    TENSOR_TRANS        60        61
2           co                                           CONVOLUTION         1         500
            nv1
3           left1                                        CONVOLUTION         3         300
4           left3                                        CONVOLUTION         3         300
5           right1                                       CONVOLUTION         3         300
6           join                                         TENSOR_COPY         4         9
7           fc                                           FULLYCONNECTED      7         99
8           prob                                         SOFTMAX             8         1
Total Time(us): 1570
"""
TRACE = {
    "traceEvents": [
        {"ph": "M", "pid": 1, "tid": 7, "name": "thread_name", "args": {"name": "GPU"}},
        # a frame, with the layers in it; the second one counts
        *(
            {"ph": "X", "pid": 1, "tid": 7, "name": name, "ts": ts + frame, "dur": dur + frame / 10}
            for frame in (0, 5000)
            for name, ts, dur in [
                ("frame", 0, 1000), ("conv1", 10, 100), ("left1", 120, 70), ("left3", 200, 70),
                ("right1", 300, 70), ("join", 400, 10), ("fc", 500, 70), ("prob", 600, 80),
            ]
        ),
        {"ph": "B", "pid": 1, "tid": 8, "name": "prob", "ts": 9000},
        {"ph": "E", "pid": 1, "tid": 8, "ts": 9100},
    ]
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name", "seconds"),
    [
        (json.dumps(TENSORRT), "tensorrt", 1.0e-3),
        (tflite_text(), "tflite", 1.56e-3),
        (tflite_csv(), "tflite", 1.56e-3),
        (RKNN, "rknn", 1.57e-3),
        (RKNN_1, "rknn", 1.57e-3),
    ],
    ids=["tensorrt", "tflite text", "tflite csv", "rknn", "rknn 1"],
)
def test_all_layers_of_a_file_are_matched(graph, tmp_path, text, name, seconds):
    file = tmp_path / "profile"
    file.write_text(text)
    profile = read_tool_profile(file)
    assert profile.format == name
    matches = match_layers(graph, profile.layers)
    assert (matches.unmatched, matches.without) == ((), ())
    assert sum(block.time_s for block in matches.blocks) == pytest.approx(seconds)
    assert profile.total_s == pytest.approx(1.57e-3, rel=0.01) or name == "tensorrt"


def test_what_tensorrt_runs_at_one_go_is_a_block(graph, tmp_path):
    file = tmp_path / "profile.json"
    file.write_text(json.dumps(TENSORRT))
    blocks = match_layers(graph, read_tool_profile(file).layers).blocks
    names = [[graph.operators[v].name for v in block.operators] for block in blocks]
    # TensorRT writes both branches into the place of the Concat
    assert names == [["conv1"], ["left1", "right1"], ["left3", "join"], ["fc", "prob"]]
    assert blocks[0].time_s == pytest.approx(0.11e-3)  # with the change of layout before it


def test_the_innermost_events_of_a_trace_are_layers_each_on_its_thread(small, tmp_path):
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(TRACE))
    assert {layer.name for layer in read_tool_profile(file).layers if layer.place == "GPU"} == {
        "conv1", "left1", "left3", "right1", "join", "fc", "prob",
    }  # fmt: skip
    platform = small[1]
    with pytest.raises(ProfilingError, match="'GPU'"):
        parapipe.import_profile(file, platform, small[0], out=tmp_path / "p.csv")


def test_a_time_that_is_none_is_told(tmp_path):
    file = tmp_path / "profile.json"
    file.write_text(json.dumps([{"name": "conv1", "averageMs": "soon"}]))
    with pytest.raises(ProfilingError, match="averageMs of 'conv1' is 'soon'"):
        read_tool_profile(file)


def test_of_benchncnns_networks_the_one_of_the_models_name_counts(small, tmp_path):
    table = tmp_path / "table.txt"
    line = "{:>20}  min = {:7.2f}  max = {:7.2f}  avg = {:7.2f}\n"
    table.write_text(line.format("small", 3, 5, 4) + line.format("other", 7, 9, 8))
    report = parapipe.import_profile(
        table, small[1], small[0], processor="big", out=tmp_path / "p.csv"
    )
    assert (report.imported.format, report.imported.blocks) == ("benchncnn", 1)
    assert report.imported.imported_s == pytest.approx(4e-3)
    table.write_text(line.format("one", 3, 5, 4) + line.format("other", 7, 9, 8))
    with pytest.raises(ProfilingError, match="no line of 'small' but of one, other"):
        parapipe.import_profile(table, small[1], small[0], processor="big")
