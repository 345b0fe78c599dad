// The steps of one step function as graphs: when they are rehearsed, recorded, replayed, and when
// they run as they are.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/distribute/core/step_graphs.h"
#include "cohort/distribute/step/step_call.h"

namespace cohort::internal {

// What a graph depends on: the form of the arguments, and what else its user adds.
using GraphKey = std::vector<uint64_t>;

// Thread safety: as StepGraphs.
class RecordedSteps {
 public:
  struct Options {
    std::string what = "a step with capture";  // for the log
    // Adds what decides on the operations of a step beside its arguments; empty: nothing.
    std::function<void(GraphKey&)> add_to_form = nullptr;
  };

  explicit RecordedSteps(Options options);
  ~RecordedSteps();
  RecordedSteps(const RecordedSteps&) = delete;
  RecordedSteps& operator=(const RecordedSteps&) = delete;

  // Runs the frame as the only replica, on `device`.
  // Errors: those of the step.
  void call(RunFrame& frame, distribute::ReplicaContext& context, c10::Device device);
  // Lets steps run as they are from here on. Writes a line of log, once.
  void refuse(const std::string& why);

  size_t num_graphs() const;
  const std::string& why_not() const { return why_not_; }

 private:
  struct Recorded;  // of one form

  Recorded& of(const GraphKey& form);
  void make_room();
  void rehearse(Recorded& one, RunFrame& frame, distribute::ReplicaContext& context);
  void record(Recorded& one, RunFrame& frame, distribute::ReplicaContext& context);
  static void replay(Recorded& one, RunFrame& frame);

  const Options options_;
  std::string why_not_;
  GraphKey form_;  // of the call under way
  uint64_t calls_ = 0;
  std::vector<std::unique_ptr<Recorded>> all_;
};

}  // namespace cohort::internal
