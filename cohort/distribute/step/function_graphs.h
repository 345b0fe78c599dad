// The graphs of the steps that a Function runs.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/distribute/core/step_graphs.h"

namespace cohort::internal {

// Graphs of its first call of Strategy::run, of its second one, ... Thread safety: none.
class FunctionGraphs {
 public:
  void begin() { next_ = 0; }
  distribute::StepGraphs& next();

 private:
  std::vector<std::unique_ptr<distribute::StepGraphs>> graphs_;
  size_t next_ = 0;
};
COHORT_API std::shared_ptr<FunctionGraphs> make_function_graphs();

// Gives the steps that the calling thread runs these graphs, one after another; nullptr: none.
class COHORT_API ScopedFunctionGraphs {
 public:
  explicit ScopedFunctionGraphs(FunctionGraphs* graphs);
  ~ScopedFunctionGraphs();
  ScopedFunctionGraphs(const ScopedFunctionGraphs&) = delete;
  ScopedFunctionGraphs& operator=(const ScopedFunctionGraphs&) = delete;

 private:
  FunctionGraphs* const outer_;
};

// The graphs of the next step that the calling thread runs; nullptr: it is in no function that has
// any.
distribute::StepGraphs* next_graphs_of_function();

}  // namespace cohort::internal
