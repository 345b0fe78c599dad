#include "column_json.h"

#include <ATen/ops/tensor.h>
#include <cohort/core/error.h>
#include <cohort/core/structure/ragged_tensor.h>
#include <cohort/core/text.h>

#include <string>
#include <vector>

#include "../hex.h"

namespace cohort::interop {
namespace {

template <class Scalar>
Tensor numbers_of(const std::vector<std::string>& texts) {
  std::vector<Scalar> numbers;
  for (const std::string& text : texts) {
    numbers.push_back(internal::parse_number<Scalar>(text).value());
  }
  return at::tensor(numbers);
}

Leaf leaf_of(const std::string& dtype, const std::vector<std::string>& texts) {
  if (dtype == "float32") return numbers_of<float>(texts);
  if (dtype == "int64") return numbers_of<int64_t>(texts);
  if (dtype != "string") throw InvalidArgumentError("the probe reads no columns of dtype " + dtype);
  std::vector<std::string> strings;
  for (const std::string& text : texts) strings.push_back(bytes_of(text));
  return StringTensor(strings);
}

Leaf reshape(const Leaf& leaf, const std::vector<int64_t>& shape) {
  if (leaf.is_strings()) return leaf.strings().reshape(shape);
  return leaf.tensor().reshape(shape);
}

template <class Scalar, class Text>
std::vector<std::string> texts_of(const Tensor& values, Text text) {
  std::vector<std::string> texts;
  const auto* numbers = values.data_ptr<Scalar>();
  for (int64_t i = 0; i < values.numel(); ++i) texts.push_back(text(numbers[i]));
  return texts;
}

Json values_json(const Leaf& leaf) {
  if (leaf.is_strings()) {
    std::vector<std::string> texts;
    for (const std::string& text : leaf.strings().to_vector()) texts.push_back(hex_of(text));
    return {{"dtype", "string"}, {"values", texts}};
  }
  const Tensor values = leaf.tensor().contiguous();
  const std::string dtype = internal::dtype_name(values.scalar_type());
  if (values.scalar_type() == float32) {
    // Nine digits tell any two of them apart.
    const auto text = [](float number) { return internal::general_digits(number, 9); };
    return {{"dtype", dtype}, {"values", texts_of<float>(values, text)}};
  }
  return {{"dtype", dtype},
          {"values", texts_of<int64_t>(values.to(int64), internal::decimal_digits<int64_t>)}};
}

}  // namespace

Structure column_of(const Json& json) {
  const Leaf values = leaf_of(json.at("dtype"), json.at("values").get<std::vector<std::string>>());
  if (json.contains("lengths")) {
    return RaggedTensor::from_row_lengths(values, json.at("lengths").get<std::vector<int64_t>>());
  }
  return reshape(values, json.at("shape").get<std::vector<int64_t>>());
}

Json column_json(const Structure& column) {
  if (column.is_leaf()) {
    Json json = values_json(column.leaf());
    json["shape"] = column.leaf().sizes();
    return json;
  }
  const RaggedTensor ragged(column);
  Json json = values_json(ragged.flat_values());
  const Tensor lengths = ragged.row_lengths().contiguous();
  json["lengths"] = std::vector<int64_t>(lengths.data_ptr<int64_t>(),
                                         lengths.data_ptr<int64_t>() + lengths.numel());
  return json;
}

}  // namespace cohort::interop
