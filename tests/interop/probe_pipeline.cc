#include <cohort/core/error.h>
#include <cohort/data/dataset.h>

#include <string>
#include <vector>

#include "probe.h"

namespace cohort::interop {
namespace {

data::Dataset build(const Json& node) {
  const std::string op = node.at("op");
  if (op == "range")
    return data::Dataset::range(node.at("start"), node.at("stop"), node.at("step"));
  if (op == "zip" || op == "concatenate") {
    const data::Dataset first = build(node.at("sources").at(0));
    const data::Dataset second = build(node.at("sources").at(1));
    return op == "zip" ? data::Dataset::zip(std::vector{first, second}) : first.concatenate(second);
  }
  const data::Dataset source = build(node.at("source"));
  if (op == "batch") {
    return source.batch(node.at("n"), {.drop_remainder = node.at("drop_remainder")});
  }
  if (op == "shard") return source.shard(node.at("n"), node.at("i"));
  if (op == "take") return source.take(node.at("n"));
  if (op == "skip") return source.skip(node.at("n"));
  if (op == "repeat") return source.repeat(node.at("n"));
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

}  // namespace

Json read_pipeline(const Json& request) {
  Json answer = {{"elements", Json::array()}, {"error", nullptr}};
  try {
    for (const Structure& element : build(request.at("pipeline"))) {
      answer["elements"].push_back(to_json(element));
    }
  } catch (const Error& error) {
    answer["error"] = code_name(error.code());
  }
  return answer;
}

}  // namespace cohort::interop
