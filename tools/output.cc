#include "tools/output.h"

#include <algorithm>
#include <cmath>

#include "cohort/core/text.h"

namespace cohort::tools {
namespace {

// Longer ones are not aligned with.
constexpr size_t kWidestColumn = 60;

}  // namespace

void print_table(const std::vector<std::vector<std::string>>& rows, std::ostream& out) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], std::min(row[i].size(), kWidestColumn));
    }
  }
  for (const auto& row : rows) {
    std::string line;
    size_t end = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      end += std::max(widths[i], row[i].size()) + 2;
      line.resize(end, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
}

nlohmann::ordered_json number_json(double number) {
  if (std::isfinite(number)) return number;
  return internal::general_digits(number, 6);
}

void print_json(const nlohmann::ordered_json& json, std::ostream& out) {
  out << json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace cohort::tools
