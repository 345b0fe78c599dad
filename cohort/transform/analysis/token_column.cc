#include "cohort/transform/analysis/token_column.h"

#include <algorithm>
#include <charconv>

#include "cohort/core/error.h"
#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/core/text.h"
#include "cohort/transform/analysis/numeric_column.h"

namespace cohort::internal {

std::span<const std::string_view> TokensOfColumn::take(const ColumnBatch& column) {
  check_rows(column);
  if (column.values.is_strings()) {
    const StringTensor& strings = column.values.strings();
    return {strings.data(), static_cast<size_t>(strings.numel())};
  }
  const Tensor& values = column.values.tensor();
  const DType dtype = values.scalar_type();
  if (!isIntegralType(dtype, /*includeBool=*/false)) {
    throw InvalidArgumentError(str("tokens are strings or integers, but a batch has ",
                                   dtype_name(dtype), "; convert the column first"));
  }
  constexpr size_t kMostDigits = 20;
  const Tensor whole = contiguous_elements(values.to(int64));
  const auto* numbers = whole.data_ptr<int64_t>();
  const auto count = static_cast<size_t>(whole.numel());
  digits_.resize(count * kMostDigits);
  views_.resize(count);
  char* end = digits_.data();
  for (size_t i = 0; i < count; ++i) {
    char* const begin = end;
    end = std::to_chars(begin, begin + kMostDigits, numbers[i]).ptr;
    views_[i] = {begin, static_cast<size_t>(end - begin)};
  }
  return views_;
}

std::vector<double> weights_of_values(const ColumnBatch& column, const ColumnBatch& weights) {
  if (weights.values.is_strings()) {
    throw InvalidArgumentError("weights are numbers, but got strings; convert the column first");
  }
  int64_t count = 1;
  for (const int64_t size : column.values.sizes()) count *= size;
  const Tensor numbers = contiguous_elements(weights.values.tensor().to(float64));
  const auto* first = numbers.data_ptr<double>();
  // Ragged values with a dense weight for each row may happen to be as many.
  const bool are_of_rows = numbers.numel() == column.rows &&
                           (numbers.numel() != count || (column.row_splits && !weights.row_splits));
  if (numbers.numel() == count && !are_of_rows) return {first, first + count};
  if (!are_of_rows) {
    throw InvalidArgumentError(str("weights are one for each of ", count,
                                   " values or one for each of ", column.rows,
                                   " rows, but there are ", numbers.numel()));
  }
  std::vector<double> of_values;
  of_values.reserve(static_cast<size_t>(count));
  if (!column.row_splits) {
    const int64_t each = count / std::max<int64_t>(column.rows, 1);
    for (int64_t row = 0; row < column.rows; ++row) {
      of_values.insert(of_values.end(), static_cast<size_t>(each), first[row]);
    }
    return of_values;
  }
  const Tensor splits = contiguous_elements(*column.row_splits);
  const auto* ends = splits.data_ptr<int64_t>();
  const int64_t each = count / std::max<int64_t>(column.values.sizes()[0], 1);
  for (int64_t row = 0; row < column.rows; ++row) {
    of_values.insert(of_values.end(), static_cast<size_t>((ends[row + 1] - ends[row]) * each),
                     first[row]);
  }
  return of_values;
}

}  // namespace cohort::internal
