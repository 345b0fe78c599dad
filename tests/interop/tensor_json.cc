#include "tensor_json.h"

#include <ATen/ops/tensor.h>
#include <cohort/core/error.h>

#include <string>
#include <vector>

namespace cohort::interop {
namespace {

template <class Scalar>
Tensor read(const Json& json) {
  return at::tensor(json.at("values").get<std::vector<Scalar>>())
      .reshape(json.at("shape").get<std::vector<int64_t>>());
}

template <class Scalar>
std::vector<Scalar> values_of(const Tensor& tensor) {
  const auto* values = tensor.data_ptr<Scalar>();
  return {values, values + tensor.numel()};
}

}  // namespace

Tensor tensor_of(const Json& json) {
  if (json.is_null()) return {};
  const std::string dtype = json.value("dtype", "float32");
  if (dtype == "float32") return read<float>(json);
  if (dtype == "float64") return read<double>(json);
  if (dtype == "int64") return read<int64_t>(json);
  throw InvalidArgumentError("the probe reads no tensors of dtype " + dtype);
}

Json json_of(const Tensor& tensor) {
  const Tensor values = tensor.detach().contiguous();
  Json json = {{"dtype", internal::dtype_name(values.scalar_type())},
               {"shape", values.sizes().vec()}};
  if (values.scalar_type() == float32) {
    json["values"] = values_of<float>(values);
  } else if (values.scalar_type() == float64) {
    json["values"] = values_of<double>(values);
  } else {
    json["values"] = values_of<int64_t>(values.to(int64));
  }
  return json;
}

}  // namespace cohort::interop
