// Graphs of simulated devices: operations that were recorded, to be done again on the same memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/structure/device_graph.h"

namespace cohort::testing {

std::unique_ptr<internal::DeviceGraph> make_simulated_graph(c10::Device device);

// How often graphs were replayed since the start of the program.
int64_t num_replays();
// Whether the calling thread replays a graph.
bool is_replaying();

using Tensors = std::vector<at::Tensor>;

// Notes operations while a graph is recorded. Like CUDA it knows tensors by their memory: what was
// there before must still be there at a replay, which is checked; what was made meanwhile belongs
// to the graph. Thread safety: one operation at a time; threads may record graphs of their own at
// once, on memory that the others do not write.
class Recorder {
 public:
  // The recorder of what the calling thread asks of the stream that is being recorded, as others
  // may do, too; nullptr: none.
  static Recorder* active();
  // Errors: c10::Error, where there is one: the host would wait.
  static void refuse_to_wait(const std::string& operation);

  virtual ~Recorder() = default;
  // Comes before an operation that may write to the tensor.
  virtual void save(const at::Tensor& tensor) = 0;
  // Notes that `results` were made of `arguments` by `again`, which a replay calls with both: what
  // it returns is written to where the results are, if it is not there already.
  virtual void add(const Tensors& arguments, const Tensors& results,
                   std::function<Tensors(const Tensors& arguments)> again) = 0;
};

// An operation's call by the dispatcher: made before it, with its arguments on the stack.
class __attribute__((visibility("hidden"))) RecordedCall {
 public:
  using Run = void (*)(const c10::OperatorHandle& operation, torch::jit::Stack* stack);

  RecordedCall(Recorder& recorder, const c10::OperatorHandle& operation,
               const torch::jit::Stack& stack);
  // After the call, with its results on the stack. `run` does it again.
  void add(const torch::jit::Stack& stack, Run run) const;

 private:
  Recorder& recorder_;
  c10::OperatorHandle operation_;
  std::vector<c10::IValue> arguments_;
  std::vector<c10::IValue> forms_;  // the arguments, with placeholders for dense tensors
  Tensors before_;                  // those tensors as they were
};

}  // namespace cohort::testing
