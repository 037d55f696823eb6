#include "plan/read_plan.hpp"

#include "error.hpp"
#include "execution/orders.hpp"
#include "operators/catalogue.hpp"
#include "plan/check_plan.hpp"
#include "plan/fields.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>

namespace parapipe {
namespace {

constexpr const char *kSchema = "parapipe/armcl/1";
constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
constexpr std::int64_t kMostCores = 4096;
constexpr std::int64_t kMostThreads = 64;
constexpr std::int64_t kMostInQueue = 1024;
constexpr std::int64_t kMostLag = 1024;
constexpr std::int64_t kMostPoints = std::int64_t{1} << 40;

using Ids = std::map<std::string, std::size_t>;

std::size_t id_of(const Field &field, const Ids &ids, const char *noun) {
    const auto name = field.name();
    const auto found = ids.find(name);
    if (found == ids.end()) {
        field.refuse(text_of("names '", name, "', which is no ", noun, " of this plan"));
    }
    return found->second;
}

void add_id(const Field &field, const std::string &name, Ids &ids) {
    if (!ids.emplace(name, ids.size()).second) {
        field.refuse("is called '" + name + "', as another one is");
    }
}

Tensor tensor_of(const std::string &name, const Field &field) {
    field.allow({"shape", "dtype", "offset"});
    Tensor tensor;
    tensor.name = name;
    std::int64_t elements = 1;
    for (const auto &extent : field["shape"].entries()) {
        tensor.shape.push_back(extent.integer(1, kMostElements));
        elements *= tensor.shape.back();
        if (elements > kMostElements) {
            field.refuse("is too large: it has more than 2^31 elements");
        }
    }
    if (tensor.shape.size() > kMostDimensions) {
        field.refuse("has more than four dimensions");
    }
    if (field["dtype"].text() != "float32") {
        field["dtype"].refuse("should be \"float32\": nothing else can be computed with");
    }
    if (const auto offset = field.find("offset")) {
        tensor.offset = static_cast<std::uint64_t>(offset->integer(0, kMostBytes));
        if (*tensor.offset % sizeof(float) != 0) {
            offset->refuse("should be a multiple of 4");
        }
    }
    return tensor;
}

BackendKind backend_of(const Field &field) {
    const auto found = backend_kinds().find(field.text());
    if (found == backend_kinds().end()) {
        field.refuse("is '" + field.text() + "' and should be \"neon\", \"opencl\", \"onednn\", \"xnnpack\" or \"plain\"");
    }
    return found->second;
}

Processor processor_of(const Field &field) {
    field.allow({"name", "backend", "cores", "threads", "frequency_hz", "host"});
    Processor processor;
    processor.name = field["name"].name();
    processor.backend = backend_of(field["backend"]);
    for (const auto &core : field["cores"].entries()) {
        processor.cores.push_back(static_cast<int>(core.integer(0, kMostCores)));
    }
    auto most = processor.cores.empty() ? kMostThreads : static_cast<std::int64_t>(processor.cores.size());
    most = processor.backend == BackendKind::opencl ? 1 : std::min(most, kMostThreads);
    processor.threads = static_cast<unsigned>(field["threads"].integer(1, most));
    if (const auto frequency = field.find("frequency_hz")) {
        processor.frequency_hz = frequency->number();
        if (processor.frequency_hz <= 0) {
            frequency->refuse("should be positive");
        }
    }
    if (const auto host = field.find("host")) {
        host->name();
    }
    return processor;
}

Operator operator_of(const Field &field, const Ids &tensors) {
    field.allow({"id", "type", "inputs", "outputs", "attributes", "activation", "source", "includes"});
    Operator op;
    op.id = field["id"].name();
    op.type = field["type"].name();
    const auto &kind = kind_of_operator(field["type"]);
    for (const auto &input : field["inputs"].entries()) {
        op.inputs.push_back(input.text().empty() ? kNone : id_of(input, tensors, "tensor"));
    }
    if (op.inputs.empty() || op.inputs.front() == kNone || op.inputs.back() == kNone) {
        field["inputs"].refuse("should neither be empty nor begin or end with \"\"");
    }
    const auto outputs = field["outputs"].entries();
    if (outputs.size() != 1) {
        field["outputs"].refuse("should be one name");
    }
    op.output = id_of(outputs.front(), tensors, "tensor");
    op.attributes = attributes_of(field["attributes"], kind);
    if (const auto activation = field.find("activation")) {
        activation->allow({"type", "attributes"});
        const auto &fused = kind_of_activation((*activation)["type"]);
        op.activation = Activation{fused.type, attributes_of((*activation)["attributes"], fused)};
    }
    const auto source = field.find("source");
    op.source = source ? source->name() : op.id;
    if (const auto includes = field.find("includes")) {
        for (const auto &name : includes->entries()) {
            op.includes.push_back(name.name());
        }
    }
    return op;
}

ProfileRow profile_row_of(const Field &field) {
    ProfileRow row;
    field.allow({"type", "kernel", "strides", "attributes", "inputs", "output", "dtype", "class", "macs",
                 "size_bytes", "then"});
    for (const char *column : {"type", "kernel", "strides", "attributes", "inputs", "output", "dtype", "class", "then"}) {
        row.cells[column] = field[column].text();
    }
    for (const char *column : {"macs", "size_bytes"}) {
        row.cells[column] = std::to_string(field[column].integer(0, INT64_MAX));
    }
    return row;
}

/// How far behind the first ones each operator of a processor works; without the field, all work on one frame.
std::vector<std::size_t> lags_of(const Field &entry, std::size_t count) {
    std::vector<std::size_t> lags(count, 0);
    if (const auto field = entry.find("lags")) {
        const auto values = field->entries();
        if (values.size() != count) {
            field->refuse(text_of("has ", values.size(), " entries, and ", count, " operators stand beside it"));
        }
        std::transform(values.begin(), values.end(), lags.begin(),
                       [](const Field &lag) { return static_cast<std::size_t>(lag.integer(0, kMostLag)); });
        if (!lags.empty()) {
            const auto least = *std::min_element(lags.begin(), lags.end());
            std::for_each(lags.begin(), lags.end(), [least](std::size_t &lag) { lag -= least; });
        }
    }
    return lags;
}

/// Processors that take turns with one; that they stand in a stage is noted in `placed`.
void read_replicas(const Field &entry, ProcessorId first, const Ids &processors, std::vector<bool> &placed, Plan &plan) {
    const auto field = entry.find("replicas");
    if (!field) {
        return;
    }
    for (const auto &name : field->entries()) {
        const auto id = id_of(name, processors, "processor");
        if (placed[id]) {
            name.refuse("stands in a stage already");
        }
        placed[id] = true;
        plan.processors[id].first = first;
        plan.processors[id].stage = plan.processors[first].stage;
        plan.processors[first].replicas.push_back(id);
    }
    if (plan.processors[first].replicas.empty()) {
        field->refuse("should name a processor or more");
    }
}

void read_stages(const Field &field, const Ids &processors, const Ids &operators, Plan &plan) {
    std::vector<bool> placed(plan.processors.size());
    for (const auto &stage : field.entries()) {
        stage.allow({"index", "processors"});
        const auto index = static_cast<std::int64_t>(plan.stages);
        stage["index"].integer(index, index);
        for (const auto &entry : stage["processors"].entries()) {
            entry.allow({"name", "replicas", "operators", "lags"});
            const auto id = id_of(entry["name"], processors, "processor");
            if (placed[id]) {
                entry["name"].refuse("stands in a stage already");
            }
            placed[id] = true;
            auto &processor = plan.processors[id];
            processor.stage = plan.stages;
            for (const auto &op : entry["operators"].entries()) {
                processor.operators.push_back(id_of(op, operators, "operator"));
            }
            processor.lags = lags_of(entry, processor.operators.size());
            read_replicas(entry, id, processors, placed, plan);
        }
        ++plan.stages;
    }
}

std::size_t memory_of(const Field &field, const std::vector<Memory> &memories) {
    const auto name = field.name();
    const auto found = std::find_if(memories.begin(), memories.end(), [&name](const Memory &each) { return each.name == name; });
    if (found == memories.end()) {
        field.refuse("names '" + name + "', which is no memory of this plan");
    }
    return static_cast<std::size_t>(found - memories.begin());
}

Place place_of(const Field &field, const Ids &tensors, const Ids &processors, const std::vector<Memory> &memories) {
    field.allow({"tensor", "processors", "memory", "offset_bytes"});
    Place place;
    place.tensor = id_of(field["tensor"], tensors, "tensor");
    for (const auto &name : field["processors"].entries()) {
        place.processors.push_back(id_of(name, processors, "processor"));
    }
    place.memory = memory_of(field["memory"], memories);
    for (const auto &offset : field["offset_bytes"].entries()) {
        place.offset_bytes.push_back(offset.integer(0, kMostBytes));
    }
    if (place.processors.empty() || place.offset_bytes.empty()) {
        field.refuse("should have a processor and an offset");
    }
    return place;
}

Arena arena_of(const Field &field, const Ids &tensors, const Ids &processors, const Ids &operators) {
    field.allow({"points", "memories", "places", "spans"});
    Arena arena;
    arena.points = field["points"].integer(1, kMostPoints);
    for (const auto &entry : field["memories"].entries()) {
        entry.allow({"name", "size_bytes"});
        arena.memories.push_back({entry["name"].name(), static_cast<std::size_t>(entry["size_bytes"].integer(0, kMostBytes))});
    }
    for (const auto &entry : field["places"].entries()) {
        arena.places.push_back(place_of(entry, tensors, processors, arena.memories));
    }
    arena.spans.resize(operators.size());
    for (const auto &[name, id] : operators) {
        const auto span = field["spans"][name].entries();
        if (span.size() != 2) {
            field["spans"].refuse("should have a start and an end for '" + name + "'");
        }
        arena.spans[id].first = span[0].integer(0, kMostPoints);
        arena.spans[id].second = span[1].integer(arena.spans[id].first, kMostPoints);
    }
    return arena;
}

std::string file_name_of(const Field &field) {
    const auto name = field.name();
    if (name.find('/') != std::string::npos || name.find('\0') != std::string::npos || name == "." || name == "..") {
        field.refuse("should be the bare name of a file in the plan's folder");
    }
    return name;
}

void read_head(const Field &root, Plan &plan) {
    root.allow({"schema", "model", "platform", "weights", "inputs", "outputs", "tensors", "operators",
                "processors", "stages", "transfers", "predicted", "profile", "arena"});
    if (root["schema"].text() != kSchema) {
        root["schema"].refuse(text_of("is '", root["schema"].text(), "' but this runner reads '", kSchema,
                                      "'; export the plan with the parapipe that this runner came with"));
    }
    root["model"].allow({"name", "sha256"});
    plan.model = root["model"]["name"].name();
    root["model"]["sha256"].name();
    plan.platform = root["platform"].name();
    root["weights"].allow({"file", "size_bytes"});
    plan.weights_file = file_name_of(root["weights"]["file"]);
    plan.weights_size_bytes = static_cast<std::uint64_t>(root["weights"]["size_bytes"].integer(0, kMostBytes));
    if (const auto predicted = root.find("predicted")) {
        predicted->allow({"latency_s", "period_s", "sustained_period_s"});
        plan.predicted = Predicted{(*predicted)["latency_s"].number(), (*predicted)["period_s"].number(),
                                   (*predicted)["sustained_period_s"].number()};
    }
}

Plan plan_of(const Field &root) {
    Plan plan;
    read_head(root, plan);
    Ids tensors;
    Ids operators;
    Ids processors;
    for (const auto &[name, field] : root["tensors"].members()) {
        plan.tensors.push_back(tensor_of(name, field));
        add_id(field, name, tensors);
    }
    for (const auto &field : root["operators"].entries()) {
        plan.operators.push_back(operator_of(field, tensors));
        add_id(field, plan.operators.back().id, operators);
    }
    for (const auto &field : root["processors"].entries()) {
        plan.processors.push_back(processor_of(field));
        add_id(field, plan.processors.back().name, processors);
    }
    for (const auto &name : root["inputs"].entries()) {
        plan.inputs.push_back(id_of(name, tensors, "tensor"));
    }
    for (const auto &name : root["outputs"].entries()) {
        plan.outputs.push_back(id_of(name, tensors, "tensor"));
    }
    read_stages(root["stages"], processors, operators, plan);
    for (const auto &field : root["transfers"].entries()) {
        field.allow({"tensor", "from", "to", "queue_depth"});
        plan.transfers.push_back({id_of(field["tensor"], tensors, "tensor"), id_of(field["from"], processors, "processor"),
                                  id_of(field["to"], processors, "processor"),
                                  static_cast<std::size_t>(field["queue_depth"].integer(1, kMostInQueue))});
    }
    if (const auto arena = root.find("arena")) {
        plan.arena = arena_of(*arena, tensors, processors, operators);
    }
    if (const auto profile = root.find("profile")) {
        for (const auto &[name, field] : profile->members()) {
            plan.profile.emplace(name, profile_row_of(field));
        }
    }
    return plan;
}

}  // namespace

std::string read_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file) {
        throw Error(path + ": cannot be read (" + std::strerror(errno ? errno : EIO) + ")");
    }
    return content;
}

Plan parse_plan(const std::string &json) {
    nlohmann::json document;
    try {
        document = nlohmann::json::parse(json);
    } catch (const nlohmann::json::exception &error) {
        throw Error(text_of("plan.json: is no JSON text: ", error.what()));
    }
    auto plan = plan_of(Field(document, ""));
    check_plan(plan);
    const auto &processors = plan.processors;
    if (std::any_of(processors.begin(), processors.end(), [](const auto &each) { return keeps_channels_last(each.backend); })) {
        plan.arena.reset();  // its offsets of what is joined and cut hold for ONNX's order
    }
    return plan;
}

const std::map<std::string, BackendKind> &backend_kinds() {
    static const std::map<std::string, BackendKind> kinds = {
        {"neon", BackendKind::neon},       {"opencl", BackendKind::opencl}, {"onednn", BackendKind::onednn},
        {"xnnpack", BackendKind::xnnpack}, {"plain", BackendKind::plain},   {"stub", BackendKind::stub}};
    return kinds;
}

Plan read_plan(const std::string &folder) {
    return parse_plan(read_file(folder + "/plan.json"));
}

std::vector<float> read_weights(const std::string &path, const Plan &plan) {
    const auto content = read_file(path);
    if (content.size() != plan.weights_size_bytes) {
        throw Error(text_of(path, ": has ", content.size(), " bytes, and ", plan.weights_size_bytes,
                            " by the plan; copy the whole folder again"));
    }
    std::vector<float> weights(content.size() / sizeof(float));
    if (!weights.empty()) {
        std::memcpy(weights.data(), content.data(), weights.size() * sizeof(float));
    }
    return weights;
}

}  // namespace parapipe
