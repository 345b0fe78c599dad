// Options of analyses as attributes, and back.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/transform/analysis/accumulator.h"
#include "cohort/transform/analysis/analyses.h"

namespace cohort::internal {

Attributes attributes_of(const NumericOptions& options);

// Reads the attributes of one analysis; each by its name, then finish().
// Errors: InvalidArgument (of another type, or unknown: names it and the analysis).
class AttributeReader {
 public:
  // `attributes` must outlive the reader.
  AttributeReader(std::string_view kind, const Attributes& attributes)
      : kind_(kind), attributes_(attributes), used_(attributes.size(), false) {}

  bool flag(std::string_view name, bool otherwise);
  std::optional<int64_t> whole(std::string_view name);
  std::optional<double> number(std::string_view name);
  std::optional<std::string> text(std::string_view name);
  std::vector<std::string> texts(std::string_view name);
  NumericOptions numeric();
  // No attribute is left.
  void finish() const;

 private:
  const Attribute* find(std::string_view name);
  template <class T>
  std::optional<T> get(std::string_view name, std::string_view type);
  [[noreturn]] void fail(std::string_view problem) const;

  const std::string kind_;
  const Attributes& attributes_;
  std::vector<bool> used_;
};

}  // namespace cohort::internal
