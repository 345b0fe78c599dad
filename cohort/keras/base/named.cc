#include "cohort/keras/base/named.h"

#include <algorithm>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

size_t edit_distance(std::string_view a, std::string_view b) {
  constexpr size_t kEdit = 2;
  const auto cost = [](char x, char y) -> size_t {
    if (x == y) return 0;
    return to_lower(x) == to_lower(y) ? 1 : kEdit;
  };
  // Distances of a's beginning to all beginnings of b.
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = j * kEdit;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = (i + 1) * kEdit;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + cost(a[i], b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + kEdit, row[j + 1] + kEdit});
    }
  }
  return row.back();
}

void throw_unknown_name(std::string_view kind, std::string_view name, const KnownNames& known,
                        std::string_view where) {
  const auto nearest = std::min_element(known.all.begin(), known.all.end(),
                                        [&](std::string_view a, std::string_view b) {
                                          return edit_distance(name, a) < edit_distance(name, b);
                                        });
  std::string classes;
  for (const std::string_view one : known.classes) {
    classes += str(classes.empty() ? "" : ", ", one);
  }
  throw InvalidArgumentError(str(where, where.empty() ? "" : ": ", "no ", kind, " is called ",
                                 quoted(name), "; the nearest is ", quoted(*nearest),
                                 "; there are: ", classes));
}

}  // namespace cohort::internal
