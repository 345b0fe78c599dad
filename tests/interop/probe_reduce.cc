#include <cohort/core/error.h>
#include <cohort/core/structure/device.h>
#include <cohort/distribute/strategies/mirrored_strategy.h>
#include <cohort/distribute/strategies/replica_context.h>

#include <map>
#include <string>

#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

DType dtype_of(const std::string& name) {
  static const std::map<std::string, DType> dtypes = {
      {"uint8", at::kByte}, {"int8", at::kChar}, {"int16", at::kShort},   {"int32", at::kInt},
      {"int64", at::kLong}, {"bool", at::kBool}, {"float32", at::kFloat}, {"float64", at::kDouble}};
  return dtypes.at(name);
}

}  // namespace

Json reduce_values(const Json& request) {
  using distribute::PerReplica;
  const auto replicas = request.at("values").size();
  config::set_logical_device_configuration("CPU", 4);
  std::vector<std::string> devices;
  for (size_t i = 0; i < replicas; ++i) devices.push_back("CPU:" + std::to_string(i));
  const distribute::MirroredStrategy strategy(devices);
  const distribute::ReduceOp op = distribute::parse_reduce_op(request.at("op").get<std::string>());
  PerReplica<Tensor>::Values values;
  for (const Json& value : request.at("values")) {
    values.push_back(tensor_of(value).to(dtype_of(request.at("dtype"))));
  }
  const PerReplica<Tensor> all(std::move(values));
  try {
    if (request.at("in_step")) {
      return json_of(strategy
                         .run([&](distribute::ReplicaContext& context,
                                  const Tensor& mine) { return context.all_reduce(op, mine); },
                              all)
                         .value(0));
    }
    const Json& axis = request.at("axis");
    if (axis.is_null()) return json_of(strategy.reduce(op, all));
    return json_of(strategy.reduce(op, all, axis.get<int64_t>()));
  } catch (const Error& error) {
    return {{"error", code_name(error.code())}};
  }
}

}  // namespace cohort::interop
