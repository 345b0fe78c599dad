// Functions of a program as operations of a preprocessing function.
//
//   auto clean = [](const StringTensor& titles) -> StringTensor { ... };
//   outputs["title"] = transform::map({.name = "clean_title", .version = 1}, clean,
//                                     {inputs["title"]});
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/structure_call.h"
#include "cohort/transform/graph/column.h"

namespace cohort {
namespace transform {

// A file holds the name and the version of such a function, and never its code. Whoever changes
// what the function computes gives it another version, and analyses again.
struct MappedFunction {
  std::string name;
  int64_t version = 1;
};

}  // namespace transform

namespace internal {
COHORT_API void register_mapped_function(const transform::MappedFunction& name,
                                         StructureFunction<> function);
COHORT_API transform::Column map_columns(const transform::MappedFunction& name,
                                         const std::vector<transform::Column>& columns);
template <class Fn>
StructureFunction<> mapped_function(const transform::MappedFunction& name, Fn function) {
  return structure_function(std::move(function),
                            CallSite{.function = "the function of transform::map",
                                     .argument = "column",
                                     .input = "the columns given to transform::map"});
}
}  // namespace internal

namespace transform {

// Makes a function known by its name, in a program that applies what another one has analysed. A
// later registration of the name replaces an earlier one.
// Thread safety: any thread. The function is called from several threads at once.
// Errors: InvalidArgument (an empty name).
template <class Fn>
void register_function(const MappedFunction& name, Fn function) {
  internal::register_mapped_function(name, internal::mapped_function(name, std::move(function)));
}

// What `function` makes of the columns of a batch: it takes each as a Tensor, StringTensor or
// RaggedTensor, and returns one of these, with a row for each row of the batch. It must depend on
// the row alone, and must not write into what it takes. It is called on made-up rows when the
// preprocessing function is traced (zeros, and strings "0"). Registers the function.
// Errors: InvalidArgument (the number of rows changes; what the function throws).
template <class Fn>
Column map(const MappedFunction& name, Fn function, const std::vector<Column>& columns) {
  register_function(name, std::move(function));
  return internal::map_columns(name, columns);
}

}  // namespace transform
}  // namespace cohort
