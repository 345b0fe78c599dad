#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <cohort/core/error.h>
#include <cohort/data/dataset.h>
#include <cohort/data/files/tfrecord_dataset.h>
#include <cohort/data/reducer.h>
#include <cohort/data/window.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline_json.h"
#include "probe.h"

namespace cohort::interop {
namespace {

std::optional<int64_t> parallel_calls(const Json& node) {
  const Json& calls = node.at("calls");
  return calls.is_null() ? std::nullopt : std::optional<int64_t>(calls.get<int64_t>());
}

// Groups of scalars by key.
std::optional<data::Dataset> group(const data::Dataset& source, const Json& node) {
  const std::string op = node.at("op");
  const int64_t keys = node.value("keys", int64_t{1});
  const auto key = [keys](int64_t x) { return x % keys; };
  if (op == "group_by_window") {
    const int64_t size = node.at("n");
    const auto reduce = [size](int64_t k, const data::Dataset& window) {
      return window.map([k](int64_t x) { return 100 * k + x; }).batch(size);
    };
    if (node.at("each")) {
      return source.group_by_window(key, reduce,
                                    {.window_size_func = [](int64_t k) { return k + 1; }});
    }
    return source.group_by_window(key, reduce, {.window_size = size});
  }
  if (op == "bucket") {
    return source.map([](int64_t x) { return Structure(at::full({x % 9}, x, at::kLong)); })
        .bucket_by_sequence_length(
            [](const Tensor& x) { return x.size(0); },
            node.at("boundaries").get<std::vector<int64_t>>(),
            node.at("sizes").get<std::vector<int64_t>>(),
            {.padded_shapes = {{kUnknownDim}},
             .padding_values = Structure(-1),
             .pad_to_bucket_boundary = node.at("to_boundary"),
             .drop_remainder = node.at("drop_remainder")});
  }
  if (op == "group_by_reducer") {
    return source.group_by_reducer(
        key, data::Reducer([](int64_t k) { return 7 * k; },
                           [](int64_t sum, int64_t x) { return (3 * sum + x) % 1000; },
                           [](int64_t sum) { return sum + 1; }));
  }
  if (op == "unique") return source.map([keys](int64_t x) { return x % (5 * keys); }).unique();
  return std::nullopt;
}

// Those of scalars run functions, the same as test_pipelines.py's build() runs.
std::optional<data::Dataset> transform(const data::Dataset& source, const Json& node) {
  const std::string op = node.at("op");
  if (op == "map") {
    const data::MapOptions options{.num_parallel_calls = parallel_calls(node)};
    if (node.at("scalars")) return source.map([](int64_t x) { return 3 * x + 1; }, options);
    return source.map([](const Tensor& x) { return 3 * x + 1; }, options);
  }
  if (op == "filter") return source.filter([](int64_t x) { return x % 3 != 0; });
  if (op == "take_while") return source.take_while([](int64_t x) { return x % 17 != 16; });
  if (op == "flat_map") {
    return source.flat_map([](int64_t x) { return data::Dataset::range(x, x + x % 4); });
  }
  if (op == "interleave") {
    return source.interleave([](int64_t x) { return data::Dataset::range(10 * x, 10 * x + x % 5); },
                             {.cycle_length = node.at("cycle"),
                              .block_length = node.at("block"),
                              .num_parallel_calls = parallel_calls(node)});
  }
  if (op == "scan") {
    return source.scan(Structure(0),
                       [](int64_t sum, int64_t x) { return std::pair((sum + x) % 1000, sum); });
  }
  if (op == "reduce") {
    return data::Dataset::from_tensors(
        source.reduce(Structure(7), [](int64_t sum, int64_t x) { return (3 * sum + x) % 1000; }));
  }
  if (op == "rebatch") {
    return source.rebatch(node.at("sizes").get<std::vector<int64_t>>(),
                          {.drop_remainder = node.at("drop_remainder")});
  }
  if (op == "padded_batch") {
    const Json& size = node.at("size");
    data::PaddedBatchOptions options{.padding_values = Structure(-1),
                                     .drop_remainder = node.at("drop_remainder")};
    if (!size.is_null()) options.padded_shapes = {{size.get<int64_t>()}};
    return source.map([](int64_t x) { return Structure(at::full({x % 4}, x, at::kLong)); })
        .padded_batch(node.at("n"), options);
  }
  if (op == "enumerate") {
    return source.enumerate(node.at("start")).map([](int64_t i, int64_t x) { return 100 * i + x; });
  }
  if (op == "unbatch") return source.unbatch();
  if (op == "window") {
    const int64_t size = node.at("n");
    const data::WindowOptions options{.shift = node.at("shift"),
                                      .stride = node.at("stride"),
                                      .drop_remainder = node.at("drop_remainder")};
    return source.window(size, options).flat_map([size](const data::Dataset& window) {
      return window.batch(size);
    });
  }
  if (op == "cache") return source.cache();
  if (op == "prefetch") return source.prefetch(node.at("n"));
  return std::nullopt;
}

data::Dataset build(const Json& node) {
  const std::string op = node.at("op");
  if (op == "range")
    return data::Dataset::range(node.at("start"), node.at("stop"), node.at("step"));
  if (op == "records") {  // numbers as text
    return data::TFRecordDataset(node.at("paths").get<std::vector<std::string>>())
        .map([](std::string_view record) {
          return static_cast<int64_t>(std::stoll(std::string(record)));
        });
  }
  if (op == "zip" || op == "concatenate") {
    const data::Dataset first = build(node.at("sources").at(0));
    const data::Dataset second = build(node.at("sources").at(1));
    return op == "zip" ? data::Dataset::zip(std::vector{first, second}) : first.concatenate(second);
  }
  if (op == "choose") {
    std::vector<data::Dataset> datasets;
    for (const Json& source : node.at("sources")) datasets.push_back(build(source));
    const data::Dataset choices = data::Dataset::from_tensor_slices(
        at::tensor(node.at("choices").get<std::vector<int64_t>>()));
    return data::Dataset::choose_from_datasets(datasets, choices,
                                               {.stop_on_empty_dataset = node.at("stop")});
  }
  if (op == "counter") return data::Dataset::counter(node.at("start"), node.at("step"));
  const data::Dataset source = build(node.at("source"));
  if (op == "single") return data::Dataset::from_tensors(source.get_single_element());
  if (const auto grouped = group(source, node)) return *grouped;
  if (op == "batch") {
    return source.batch(node.at("n"), {.drop_remainder = node.at("drop_remainder")});
  }
  if (op == "shard") return source.shard(node.at("n"), node.at("i"));
  if (op == "take") return source.take(node.at("n"));
  if (op == "skip") return source.skip(node.at("n"));
  if (op == "repeat") return source.repeat(node.at("n"));
  if (const auto transformed = transform(source, node)) return *transformed;
  throw InvalidArgumentError("no transformation '" + op + "'");
}

Json to_json(const Structure& element) {
  if (element.is_tuple()) {
    Json members = Json::array();
    for (const Structure& member : element.members()) members.push_back(to_json(member));
    return members;
  }
  const Tensor tensor = element.tensor().contiguous();
  const auto* values = tensor.data_ptr<int64_t>();
  return {{"shape", tensor.sizes().vec()},
          {"values", std::vector<int64_t>(values, values + tensor.numel())}};
}

// Of each leaf: its sizes, null where unknown.
Json shapes_json(const data::Dataset& dataset) {
  Json shapes = Json::array();
  for (const TensorSpec& leaf : dataset.element_spec().flatten()) {
    Json sizes = Json::array();
    for (const int64_t size : *leaf.shape()) {
      sizes.push_back(size == kUnknownDim ? Json() : Json(size));
    }
    shapes.push_back(std::move(sizes));
  }
  return shapes;
}

}  // namespace

data::Dataset build_pipeline(const Json& node) { return build(node); }
Json element_json(const Structure& element) { return to_json(element); }

Json read_pipeline(const Json& request) {
  Json answer = {{"elements", Json::array()}, {"error", nullptr}};
  try {
    const data::Dataset dataset = build(request.at("pipeline"));
    if (request.value("describe", false)) {
      answer["cardinality"] = dataset.cardinality();
      answer["shapes"] = shapes_json(dataset);
    }
    for (const Structure& element : dataset) answer["elements"].push_back(to_json(element));
  } catch (const Error& error) {
    answer["error"] = code_name(error.code());
  }
  return answer;
}

}  // namespace cohort::interop
