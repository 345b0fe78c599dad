#include "cohort/data/files/csv_columns.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <type_traits>

#include "cohort/core/text.h"
#include "cohort/data/records/csv.h"

namespace cohort::internal {
namespace {

using data::CsvColumn;

std::string type_name(const CsvColumn& column) {
  return column.spec().is_string() ? "string" : dtype_name(column.spec().dtype());
}

TensorSpec scalar_of(DType dtype) { return TensorSpec(std::vector<int64_t>{}, dtype); }

}  // namespace

std::string csv_type_name(const CsvColumn& column) {
  std::string name = type_name(column);
  if (!column.default_value()) return name;
  return std::visit(
      [&](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
          return name + "=" + quoted(value);
        } else {
          return str(name, "=", value);
        }
      },
      *column.default_value());
}

CsvValues::CsvValues(const CsvColumn& column) : column_(column) {
  if (column.spec().is_string()) {
    values_ = std::vector<std::string>();
  } else if (column.spec().dtype() == int32) {
    values_ = std::vector<int32_t>();
  } else if (column.spec().dtype() == int64) {
    values_ = std::vector<int64_t>();
  } else if (column.spec().dtype() == float32) {
    values_ = std::vector<float>();
  } else {
    values_ = std::vector<double>();
  }
}

std::optional<std::string> CsvValues::add(std::string_view field) {
  return std::visit(
      [&](auto& values) -> std::optional<std::string> {
        using Value = typename std::decay_t<decltype(values)>::value_type;
        if (field.empty()) {
          if (!column_.default_value()) return "is required, but empty";
          values.push_back(std::get<Value>(*column_.default_value()));
          return std::nullopt;
        }
        if constexpr (std::is_same_v<Value, std::string>) {
          values.emplace_back(field);
        } else {
          const auto value = parse_number<Value>(field);
          if (!value) {
            return str("is no ", type_name(column_), ": ", quoted(field.substr(0, 100)));
          }
          values.push_back(*value);
        }
        return std::nullopt;
      },
      values_);
}

Leaf CsvValues::leaf(bool scalar) const {
  return std::visit(
      [&](const auto& values) -> Leaf {
        using Value = typename std::decay_t<decltype(values)>::value_type;
        std::vector<int64_t> shape;
        if (!scalar) shape.push_back(static_cast<int64_t>(values.size()));
        if constexpr (std::is_same_v<Value, std::string>) {
          return StringTensor(values, std::move(shape));
        } else {
          const Tensor tensor = at::empty(shape, column_.spec().dtype());
          std::copy(values.begin(), values.end(), tensor.data_ptr<Value>());
          return tensor;
        }
      },
      values_);
}

}  // namespace cohort::internal

namespace cohort::data {

CsvColumn::CsvColumn(DType dtype) : spec_(std::vector<int64_t>(), dtype) {
  if (dtype == int32 || dtype == int64 || dtype == float32 || dtype == float64) return;
  throw InvalidArgumentError(
      internal::str("a CSV column of ", internal::dtype_name(dtype),
                    ": columns are int32, int64, float32, float64 or strings()"));
}
CsvColumn CsvColumn::int32s(std::optional<int32_t> default_value) {
  return {internal::scalar_of(int32), default_value};
}
CsvColumn CsvColumn::ints(std::optional<int64_t> default_value) {
  return {internal::scalar_of(int64), default_value};
}
CsvColumn CsvColumn::floats(std::optional<float> default_value) {
  return {internal::scalar_of(float32), default_value};
}
CsvColumn CsvColumn::doubles(std::optional<double> default_value) {
  return {internal::scalar_of(float64), default_value};
}
CsvColumn CsvColumn::strings(std::optional<std::string> default_value) {
  // Not by conversion of the whole optional: g++ 12 would warn of the variant's unused members
  // (https://gcc.gnu.org/PR80635).
  std::optional<Default> text;
  if (default_value) text.emplace(std::move(*default_value));
  return {TensorSpec::strings(std::vector<int64_t>{}), std::move(text)};
}

}  // namespace cohort::data
