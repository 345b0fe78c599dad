#include "tensor_json.h"

#include <ATen/ops/tensor.h>
#include <cohort/core/error.h>
#include <cohort/core/structure/ragged_tensor.h>

#include <string>
#include <utility>
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
  if (dtype == "int32") return read<int64_t>(json).to(int32);
  if (dtype == "uint8") return read<int64_t>(json).to(at::kByte);
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

Structure structure_of(const Json& json) {
  if (json.is_array()) {
    std::vector<Structure> members;
    for (const Json& member : json) members.push_back(structure_of(member));
    return Structure::make_tuple(std::move(members));
  }
  if (json.contains("ragged")) {
    const std::vector<int64_t> splits = json.at("row_splits").get<std::vector<int64_t>>();
    return RaggedTensor::from_row_splits(structure_of(json.at("ragged")).leaf(),
                                         at::tensor(splits, at::dtype(at::kLong)));
  }
  if (json.contains("values")) {
    if (json.at("dtype") != "string") return tensor_of(json);
    return StringTensor(json.at("values").get<std::vector<std::string>>(),
                        json.at("shape").get<std::vector<int64_t>>());
  }
  Structure::Dict members;
  for (const auto& [key, member] : json.items()) members.emplace_back(key, structure_of(member));
  return Structure::make_dict(std::move(members));
}

Json json_of(const Structure& structure) {
  if (!structure.is_leaf()) {
    const RaggedTensor ragged = structure;
    return {{"ragged", json_of(Structure(ragged.flat_values()))},
            {"row_splits", values_of<int64_t>(ragged.row_splits())}};
  }
  if (structure.leaf().is_tensor()) return json_of(structure.tensor());
  return {{"dtype", "string"},
          {"shape", structure.strings().sizes()},
          {"values", structure.strings().to_vector()}};
}

}  // namespace cohort::interop
