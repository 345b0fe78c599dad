// Graphs of the steps of one step function, for RunOptions::capture.
//
//   const StepGraphs graphs;
//   for (const auto& batch : dist_dataset) {
//     strategy.run({.capture = graphs}, train_step, batch);
//   }
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/core/handle.h"

namespace cohort::internal {
class RecordedSteps;
}

namespace cohort::distribute {

// A step of one replica on one GPU can be recorded and launched as a whole, which costs the host
// what one operation costs. The first steps run as they are; then the step is recorded once for
// each form of its arguments (shapes, dtypes, numbers), and replayed. As in a tf.function, the code
// of the step itself does not run in a replay: what it does beside tensors happens only in the
// first steps, and numbers that it takes from elsewhere stay those of the recording. Learning
// rates, random numbers, the tensors of its arguments and the values of variables are those of each
// step. A step that cannot be recorded runs as it is, and a line in the log says why.
// A handle: copies name the same graphs. Use it with one step function.
// Thread safety: none; one step at a time.
class COHORT_API StepGraphs {
 public:
  StepGraphs();
  // How many graphs there are.
  size_t size() const;
  // Why steps run as they are; empty: they do not, or it is not known yet.
  std::string why_not() const;

  internal::RecordedSteps& steps() const { return *steps_; }
  const std::shared_ptr<internal::RecordedSteps>& pointer() const { return steps_.pointer(); }
  explicit StepGraphs(std::shared_ptr<internal::RecordedSteps> steps) : steps_(std::move(steps)) {}

 private:
  internal::Handle<internal::RecordedSteps, "StepGraphs"> steps_;
};

}  // namespace cohort::distribute
