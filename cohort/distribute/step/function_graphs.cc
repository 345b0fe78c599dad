#include "cohort/distribute/step/function_graphs.h"

#include <utility>

namespace cohort::internal {
namespace {

thread_local FunctionGraphs* current_graphs = nullptr;

}  // namespace

distribute::StepGraphs& FunctionGraphs::next() {
  if (next_ == graphs_.size()) graphs_.push_back(std::make_unique<distribute::StepGraphs>());
  return *graphs_[next_++];
}

std::shared_ptr<FunctionGraphs> make_function_graphs() {
  return std::make_shared<FunctionGraphs>();
}

ScopedFunctionGraphs::ScopedFunctionGraphs(FunctionGraphs* graphs) : outer_(current_graphs) {
  if (graphs == nullptr) return;
  graphs->begin();
  current_graphs = graphs;
}

ScopedFunctionGraphs::~ScopedFunctionGraphs() { current_graphs = outer_; }

distribute::StepGraphs* next_graphs_of_function() {
  return current_graphs == nullptr ? nullptr : &current_graphs->next();
}

}  // namespace cohort::internal
