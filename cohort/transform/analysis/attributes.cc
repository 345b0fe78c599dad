#include "cohort/transform/analysis/attributes.h"

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

DType dtype_of_name(std::string_view name) {
  for (const DType dtype : {DType::Byte, DType::Char, DType::Short, DType::Int, DType::Long,
                            DType::Half, DType::BFloat16, DType::Float, DType::Double}) {
    if (dtype_name(dtype) == name) return dtype;
  }
  throw InvalidArgumentError(str("no analysis takes the dtype ", quoted(name)));
}

}  // namespace

Attributes attributes_of(const NumericOptions& options) {
  Attributes attributes;
  if (options.dtype) attributes.emplace_back("dtype", dtype_name(*options.dtype));
  attributes.emplace_back("reduce_instance_dims", options.reduce_instance_dims);
  return attributes;
}

const Attribute* AttributeReader::find(std::string_view name) {
  for (size_t i = 0; i < attributes_.size(); ++i) {
    if (attributes_[i].first != name) continue;
    used_[i] = true;
    return &attributes_[i].second;
  }
  return nullptr;
}

template <class T>
std::optional<T> AttributeReader::get(std::string_view name, std::string_view type) {
  const Attribute* const attribute = find(name);
  if (attribute == nullptr) return std::nullopt;
  if (const T* const value = std::get_if<T>(attribute)) return *value;
  fail(str("its attribute ", quoted(name), " is to be ", type));
}

bool AttributeReader::flag(std::string_view name, bool otherwise) {
  return get<bool>(name, "true or false").value_or(otherwise);
}
std::optional<int64_t> AttributeReader::whole(std::string_view name) {
  return get<int64_t>(name, "a whole number");
}
std::optional<double> AttributeReader::number(std::string_view name) {
  const Attribute* const attribute = find(name);
  if (attribute == nullptr) return std::nullopt;
  if (const auto* const whole = std::get_if<int64_t>(attribute)) {
    return static_cast<double>(*whole);
  }
  return get<double>(name, "a number");
}
std::optional<std::string> AttributeReader::text(std::string_view name) {
  return get<std::string>(name, "a text");
}
std::vector<std::string> AttributeReader::texts(std::string_view name) {
  return get<std::vector<std::string>>(name, "a list of texts")
      .value_or(std::vector<std::string>());
}

NumericOptions AttributeReader::numeric() {
  NumericOptions options;
  if (const auto dtype = text("dtype")) options.dtype = dtype_of_name(*dtype);
  options.reduce_instance_dims = flag("reduce_instance_dims", true);
  return options;
}

void AttributeReader::finish() const {
  for (size_t i = 0; i < used_.size(); ++i) {
    if (!used_[i]) fail(str("it has no attribute ", quoted(attributes_[i].first)));
  }
}

void AttributeReader::fail(std::string_view problem) const {
  throw InvalidArgumentError(str("the analysis ", quoted(kind_), ": ", problem));
}

}  // namespace cohort::internal
