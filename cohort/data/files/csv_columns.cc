#include "cohort/data/files/csv_columns.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text_stream.h"

namespace cohort::data {
namespace {

TensorSpec scalar_of(DType dtype) { return TensorSpec(std::vector<int64_t>{}, dtype); }

}  // namespace

CsvColumn::CsvColumn(DType dtype) : spec_(std::vector<int64_t>(), dtype) {
  if (dtype == int32 || dtype == int64 || dtype == float32 || dtype == float64) return;
  throw InvalidArgumentError(
      internal::str("a CSV column of ", internal::dtype_name(dtype),
                    ": columns are int32, int64, float32, float64 or strings()"));
}
CsvColumn CsvColumn::int32s(std::optional<int32_t> default_value) {
  return {scalar_of(int32), default_value};
}
CsvColumn CsvColumn::ints(std::optional<int64_t> default_value) {
  return {scalar_of(int64), default_value};
}
CsvColumn CsvColumn::floats(std::optional<float> default_value) {
  return {scalar_of(float32), default_value};
}
CsvColumn CsvColumn::doubles(std::optional<double> default_value) {
  return {scalar_of(float64), default_value};
}
CsvColumn CsvColumn::strings(std::optional<std::string> default_value) {
  // Not by conversion of the whole optional: g++ 12 would warn of the variant's unused members
  // (https://gcc.gnu.org/PR80635).
  std::optional<Default> text;
  if (default_value) text.emplace(std::move(*default_value));
  return {TensorSpec::strings(std::vector<int64_t>{}), std::move(text)};
}

}  // namespace cohort::data
