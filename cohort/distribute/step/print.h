// Printing values, also from steps:
//
//   tf::print("loss:", loss, "of step", step);        // loss: 0.25 of step 3
//   tf::print({.output_stream = &std::cout}, x);      // [0 1 2 ... 97 98 99]
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/text_stream.h"
#include "cohort/distribute/values/values.h"
#include "cohort/distribute/variables/variable.h"

namespace cohort {

struct PrintOptions {
  std::ostream* output_stream = nullptr;  // nullptr: standard error, as in TensorFlow
  std::string_view end = "\n";
  std::string_view sep = " ";
  // How many elements are printed at the beginning and the end of each dimension; -1: all.
  int64_t summarize = 3;
};

namespace internal {

// TensorFlow's text: [[0 1 2]\n [3 4 5]], strings in quotation marks, (a, b), {'key': a}; a
// RaggedTensor as [[0, 1], []], a sparse tensor as 'SparseTensor(indices=.., values=.., shape=..)'.
COHORT_API std::string print_text(const Structure& value, int64_t summarize);
// Prints a list of tensors like a tuple.
COHORT_API std::string print_text(const std::vector<Tensor>& values, int64_t summarize);
// Prints a number like Python: 1.0, 0.1.
COHORT_API std::string print_text(double value);
COHORT_API void print_line(std::string line, std::ostream* out);

template <class T>
std::string text_to_print(const T& value, const PrintOptions& options) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return std::string(std::string_view(value));
  } else if constexpr (std::same_as<T, bool>) {
    return value ? "True" : "False";
  } else if constexpr (std::is_floating_point_v<T>) {
    return print_text(static_cast<double>(value));
  } else if constexpr (std::same_as<T, distribute::Variable>) {
    return print_text(Structure(value.value()), options.summarize);
  } else if constexpr (std::is_convertible_v<const T&, Structure> && !std::is_integral_v<T>) {
    return print_text(value, options.summarize);
  } else if constexpr (std::same_as<T, std::vector<std::string>>) {
    return print_text(Structure(StringTensor(value)), options.summarize);
  } else if constexpr (requires {
                         { *value.begin() } -> std::convertible_to<Tensor>;
                         value.end();
                       }) {
    return print_text(std::vector<Tensor>(value.begin(), value.end()), options.summarize);
  } else {
    static_assert(
        requires(std::ostream & out) { out << value; }, "tf::print of a type without operator<<");
    TextStream out;
    out << value;
    return std::move(out).str();
  }
}

}  // namespace internal

// Prints the values with `sep` between them and `end` after them, as one piece that no other
// thread's text comes into. Tensors print as in TensorFlow: [0 1 2 ... 7 8 9].
// In a step: replica 0's lines come at once, those of the others when the step ends or all replicas
// meet in merge_call; between two such points in replica order. So every replica may print, or only
// some. Of several processes each prints its own replicas' lines.
// Thread safety: any thread.
template <class... Values>
void print(const PrintOptions& options, const Values&... values) {
  std::string line;
  size_t index = 0;
  ((line.append(index++ > 0 ? options.sep : std::string_view())
        .append(internal::text_to_print(values, options))),
   ...);
  internal::print_line(std::move(line.append(options.end)), options.output_stream);
}
template <class First, class... Values>
requires(!std::same_as<First, PrintOptions>) void print(const First& first,
                                                        const Values&... values) {
  print(PrintOptions(), first, values...);
}

}  // namespace cohort
