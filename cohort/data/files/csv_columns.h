// The values of a column of a CSV file, field by field.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cohort/core/structure/structure.h"
#include "cohort/data/files/csv_dataset.h"

namespace cohort::internal {

// "int64", "float32=0.5", "string": with the default value.
std::string csv_type_name(const data::CsvColumn& column);

// Thread safety: none.
class CsvValues {
 public:
  // `column` must live as long.
  explicit CsvValues(const data::CsvColumn& column);

  // What is wrong with the field, or nothing: "is required, but empty".
  std::optional<std::string> add(std::string_view field);
  // The values, shape [n]; the only one, shape [], where `scalar`.
  Leaf leaf(bool scalar) const;

 private:
  const data::CsvColumn& column_;
  std::variant<std::vector<int32_t>, std::vector<int64_t>, std::vector<float>, std::vector<double>,
               std::vector<std::string>>
      values_;
};

}  // namespace cohort::internal
