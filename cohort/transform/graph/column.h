// What a preprocessing function computes with: columns that do not hold values yet.
//
//   auto preprocess = [](const transform::Columns& inputs) {
//     transform::Columns outputs;
//     outputs["age"] = transform::scale_to_z_score(inputs["age"]);
//     outputs["per_day"] = inputs["income"] / 365 - 1;
//     return outputs;
//   };
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/leaf_type.h"

namespace cohort {
namespace internal {
struct ColumnType;
struct TransformNode;
}  // namespace internal

namespace transform {

// A step of a preprocessing function: an input, what an operation makes of other columns, or a
// statistic of a whole dataset, which is one value for all rows. A handle; copies name the same
// step. Operators work element by element, with libtorch's rules for dtypes and sizes; a statistic
// and a number count as one value for all elements.
// Thread safety: immutable.
class COHORT_API Column {
 public:
  // Holds nothing; whatever is made of it is an error.
  Column() = default;
  // A number, for operators.
  Column(double number);
  Column(int64_t number);
  Column(int number) : Column(static_cast<int64_t>(number)) {}
  // A text, to compare with.
  Column(std::string_view text);
  Column(const std::string& text) : Column(std::string_view(text)) {}
  Column(const char* text) : Column(std::string_view(text)) {}
  explicit Column(std::shared_ptr<const internal::TransformNode> node) : node_(std::move(node)) {}

  // Errors of both: FailedPrecondition (it holds nothing).
  LeafType dtype() const;
  // Whether rows hold different numbers of values, missing ones among them.
  bool is_ragged() const;

  const std::shared_ptr<const internal::TransformNode>& node() const { return node_; }

 private:
  const internal::ColumnType& type() const;

  std::shared_ptr<const internal::TransformNode> node_;
};

// Columns by name, in order of insertion. Thread safety: as std::vector.
class COHORT_API Columns {
 public:
  Columns() = default;
  Columns(std::initializer_list<std::pair<std::string, Column>> columns);

  // Errors: NotFound (names the columns that there are).
  const Column& operator[](std::string_view name) const;
  const Column& operator[](const char* name) const { return (*this)[std::string_view(name)]; }
  // To set one: makes the column if there is none of this name.
  Column& operator[](std::string_view name);
  Column& operator[](const char* name) { return (*this)[std::string_view(name)]; }
  bool contains(std::string_view name) const;
  size_t size() const { return columns_.size(); }
  auto begin() const { return columns_.begin(); }
  auto end() const { return columns_.end(); }

 private:
  std::vector<std::pair<std::string, Column>> columns_;
};

// A preprocessing function. It is called once to learn what it does, not for each batch: a C++ `if`
// over the number of columns is fine, one over their values is not possible.
using PreprocessingFunction = std::function<Columns(const Columns& inputs)>;

COHORT_API Column operator+(const Column& x, const Column& y);
COHORT_API Column operator-(const Column& x, const Column& y);
COHORT_API Column operator*(const Column& x, const Column& y);
// Quotients of integers are float32.
COHORT_API Column operator/(const Column& x, const Column& y);
COHORT_API Column operator-(const Column& x);
// Bool. == and != also compare texts.
COHORT_API Column operator==(const Column& x, const Column& y);
COHORT_API Column operator!=(const Column& x, const Column& y);
COHORT_API Column operator<(const Column& x, const Column& y);
COHORT_API Column operator<=(const Column& x, const Column& y);
COHORT_API Column operator>(const Column& x, const Column& y);
COHORT_API Column operator>=(const Column& x, const Column& y);
COHORT_API Column operator&(const Column& x, const Column& y);
COHORT_API Column operator|(const Column& x, const Column& y);
COHORT_API Column operator!(const Column& x);

}  // namespace transform
}  // namespace cohort
