#include "cohort/distribute/step/recorded_steps.h"

#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <typeinfo>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/recording/device_graphs.h"
#include "cohort/core/recording/operation_trace.h"
#include "cohort/core/recording/step_recording.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/text.h"

namespace cohort::internal {

using distribute::ReplicaContext;

namespace {

// Two rehearsals alike, one after another, come before a recording.
constexpr int kMostRehearsals = 5;
// Each graph has memory of its own for all that its step computes.
constexpr size_t kMostGraphs = 8;
constexpr size_t kMostForms = 64;

// Calls visit(tensor) for every tensor of the arguments, in order.
class TensorVisitor : public ArgumentVisitor {
 public:
  void tensor(Tensor& argument) override { visit(argument); }
  void structure(Structure& argument) override {
    argument = argument.map([this](const Leaf& leaf) -> Leaf {
      if (!leaf.is_tensor()) return leaf;
      Tensor tensor = leaf.tensor();
      visit(tensor);
      return tensor;
    });
  }
  void value(const void*, size_t) override {}
  void other(const char*) override {}

 protected:
  ~TensorVisitor() = default;

 private:
  virtual void visit(Tensor& tensor) = 0;
};

// Describes the arguments, so that equal forms can share a graph.
class FormVisitor final : public ArgumentVisitor {
 public:
  FormVisitor(GraphKey& form, c10::Device device) : form_(form), device_(device) {}

  const std::string& obstacle() const { return obstacle_; }

  void tensor(Tensor& argument) override { add(argument); }
  void structure(Structure& argument) override { add_members(argument); }
  void value(const void* bytes, size_t size) override {
    const auto* const first = static_cast<const unsigned char*>(bytes);
    uint64_t word = size;
    for (size_t i = 0; i < size; ++i) {
      word = word << 8 | first[i];
      if (i % 7 == 6 || i + 1 == size) form_.push_back(std::exchange(word, 0));
    }
  }
  void other(const char* what) override {
    note(str(what, " is neither a tensor, a number, a variable nor a structure of tensors"));
  }

 private:
  void note(const std::string& what) {
    if (obstacle_.empty()) obstacle_ = what;
  }

  void add(const Tensor& tensor) {
    if (!tensor.defined()) return form_.push_back(0);
    if (tensor.device() != device_ || tensor.layout() != at::kStrided) {
      return note(str("an argument of the step is a tensor of ", tensor.device().str(),
                      ", and not a dense one of the replica's ", device_.str()));
    }
    if (!tensor.is_non_overlapping_and_dense()) {
      return note("an argument of the step has elements that share memory, or gaps between them");
    }
    form_.push_back(static_cast<uint64_t>(tensor.scalar_type()) << 8 |
                    static_cast<uint64_t>(tensor.dim()) << 1 | 1);
    for (const int64_t size : tensor.sizes()) form_.push_back(static_cast<uint64_t>(size));
    for (const int64_t stride : tensor.strides()) form_.push_back(static_cast<uint64_t>(stride));
  }

  void add_members(const Structure& structure) {
    if (structure.is_leaf()) {
      if (structure.leaf().is_tensor()) return add(structure.tensor());
      return note("an argument of the step holds strings");
    }
    form_.push_back(structure.size());
    if (structure.is_dict()) {
      for (const auto& [key, member] : structure.items()) {
        form_.push_back(std::hash<std::string>()(key));
        add_members(member);
      }
    } else {
      for (size_t i = 0; i < structure.size(); ++i) add_members(structure[i]);
    }
  }

  GraphKey& form_;
  const c10::Device device_;
  std::string obstacle_;
};

// Puts other tensors in the place of the arguments', and keeps those.
class ReplacingVisitor final : public TensorVisitor {
 public:
  explicit ReplacingVisitor(std::vector<Tensor>& others) : others_(others) {}

 private:
  void visit(Tensor& tensor) override { std::swap(tensor, others_[next_++]); }

  std::vector<Tensor>& others_;
  size_t next_ = 0;
};

// Makes tensors like the arguments', with their values.
class CopyingVisitor final : public TensorVisitor {
 public:
  std::vector<Tensor> copies;

 private:
  void visit(Tensor& tensor) override {
    copies.push_back(!tensor.defined()
                         ? Tensor()
                         : at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options()));
    if (tensor.defined()) copies.back().copy_(tensor);
  }
};

// Tells a trace which tensors are arguments.
class ArgumentsOfTrace final : public TensorVisitor {
 public:
  explicit ArgumentsOfTrace(OperationTrace& trace) : trace_(trace) {}

 private:
  void visit(Tensor& tensor) override { trace_.add_argument(tensor); }

  OperationTrace& trace_;
};

// Writes the arguments' values to the tensors that a graph reads.
class WritingVisitor final : public TensorVisitor {
 public:
  explicit WritingVisitor(const std::vector<Tensor>& to) : to_(to) {}

 private:
  void visit(Tensor& tensor) override {
    const Tensor& target = to_[next_++];
    if (tensor.defined()) target.copy_(tensor, /*non_blocking=*/true);
  }

  const std::vector<Tensor>& to_;
  size_t next_ = 0;
};

// Later replays write to the tensors of the recording.
class Cloning final : public TensorMapping {
 public:
  bool changes(const Tensor&) const override { return true; }
  Tensor mapped(const Tensor& tensor) const override { return tensor.clone(); }
};

// Finds tensors of the host, which no replay writes.
class HostFinder final : public TensorMapping {
 public:
  bool changes(const Tensor& tensor) const override {
    found_ = found_ || tensor.is_cpu();
    return false;
  }
  Tensor mapped(const Tensor& tensor) const override { return tensor; }
  bool found() const { return found_; }

 private:
  mutable bool found_ = false;
};

}  // namespace

struct RecordedSteps::Recorded {
  explicit Recorded(GraphKey of) : form(std::move(of)) {}

  const GraphKey form;
  uint64_t last_call = 0;
  bool ran = false;  // once, as it is: layers and slots were made
  int rehearsals = 0;
  bool is_rehearsed = false;  // two rehearsals were alike
  bool is_recorded = false;
  std::unique_ptr<OperationTrace> rehearsed;
  std::vector<HostPart::Values> values;
  // Members of a graph, which go in the opposite order.
  std::unique_ptr<DeviceGraph> graph;
  std::vector<c10::Storage> memory;  // of variables, which may not outlive the step otherwise
  std::unique_ptr<HostPart> host;
  std::vector<Tensor> inputs;
  std::shared_ptr<const void> result;
};

RecordedSteps::RecordedSteps(Options options) : options_(std::move(options)) {}

RecordedSteps::~RecordedSteps() = default;

size_t RecordedSteps::num_graphs() const {
  return static_cast<size_t>(
      std::count_if(all_.begin(), all_.end(), [](const auto& one) { return one->is_recorded; }));
}

void RecordedSteps::refuse(const std::string& why) {
  if (!why_not_.empty()) return;
  why_not_ = why;
  all_.clear();
  log_info(options_.what, " runs as it is, and not as a recorded graph: ", why);
}

void RecordedSteps::call(RunFrame& frame, ReplicaContext& context, c10::Device device) {
  if (why_not_.empty() && device.is_cpu()) refuse("its replica is on the host, not on a GPU");
  if (!why_not_.empty()) return frame.call(context, 0);
  form_.clear();
  form_.push_back(typeid(frame).hash_code());
  form_.push_back(static_cast<uint64_t>(device.index()));
  FormVisitor describe(form_, device);
  frame.visit_arguments(describe, 0);
  if (!describe.obstacle().empty()) {
    refuse(describe.obstacle());
    return frame.call(context, 0);
  }
  if (options_.add_to_form) options_.add_to_form(form_);
  Recorded& one = of(form_);
  if (one.is_recorded) {
    WritingVisitor write(one.inputs);
    frame.visit_arguments(write, 0);
    return replay(one, frame);
  }
  if (!one.ran) {
    frame.call(context, 0);
    one.ran = true;  // not where it throws: the next one makes what is missing
    return;
  }
  if (one.graph == nullptr) one.graph = make_device_graph(device);
  if (one.graph == nullptr) {
    refuse(str("this build of Cohort has no graphs for ", device.str()));
    return frame.call(context, 0);
  }
  if (one.is_rehearsed) return record(one, frame, context);
  rehearse(one, frame, context);
}

RecordedSteps::Recorded& RecordedSteps::of(const GraphKey& form) {
  ++calls_;
  for (const auto& one : all_) {
    if (one->form != form) continue;
    one->last_call = calls_;
    return *one;
  }
  if (all_.size() == kMostForms) make_room();
  all_.push_back(std::make_unique<Recorded>(form));
  all_.back()->last_call = calls_;
  return *all_.back();
}

// Gives up what was not used for the longest time.
void RecordedSteps::make_room() {
  all_.erase(std::min_element(all_.begin(), all_.end(), [](const auto& a, const auto& b) {
    return a->last_call < b->last_call;
  }));
}

void RecordedSteps::rehearse(Recorded& one, RunFrame& frame, ReplicaContext& context) {
  const c10::Device device = device_of_new_tensors();
  auto trace = std::make_unique<OperationTrace>(device);
  if (!trace->is_watching()) return frame.call(context, 0);  // another task records a step
  ArgumentsOfTrace note_arguments(*trace);
  frame.visit_arguments(note_arguments, 0);
  StepRecording recording(device, *trace);
  one.graph->rehearse([&] { frame.call(context, 0); });
  trace->stop();
  if (!recording.refusal().empty()) return refuse(std::string(recording.refusal()));
  if (!trace->obstacle().empty()) return refuse(std::string(trace->obstacle()));
  const std::string difference =
      one.rehearsed == nullptr ? "" : OperationTrace::difference(*one.rehearsed, *trace);
  if (++one.rehearsals == kMostRehearsals && !difference.empty()) return refuse(difference);
  one.is_rehearsed = one.rehearsed != nullptr && difference.empty();
  one.values = recording.values();
  one.rehearsed = std::move(trace);
}

void RecordedSteps::record(Recorded& one, RunFrame& frame, ReplicaContext& context) {
  const c10::Device device = device_of_new_tensors();
  CopyingVisitor copy;
  std::unique_ptr<HostPart> host;
  try {
    frame.visit_arguments(copy, 0);
    host = std::make_unique<HostPart>(device, one.values);
  } catch (const c10::Error& error) {  // no memory, for instance
    frame.call(context, 0);
    return refuse(str("its arguments cannot be copied: ", error.what_without_backtrace()));
  }
  OperationTrace trace(device);
  if (!trace.is_watching()) return frame.call(context, 0);
  std::vector<Tensor> others = copy.copies;
  ReplacingVisitor use_copies(others);
  frame.visit_arguments(use_copies, 0);
  ArgumentsOfTrace note_arguments(trace);
  frame.visit_arguments(note_arguments, 0);
  std::string why;
  std::exception_ptr of_program;
  {
    StepRecording recording(device, trace, *host);
    try {
      one.graph->record([&] { frame.call(context, 0); });
    } catch (const std::exception& error) {  // also NotRecordable
      why = record_error(std::current_exception()).message;
      // What neither this library nor libtorch has thrown says nothing about the recording.
      const bool is_known = dynamic_cast<const Error*>(&error) != nullptr ||
                            dynamic_cast<const c10::Error*>(&error) != nullptr ||
                            dynamic_cast<const NotRecordable*>(&error) != nullptr;
      if (!is_known) of_program = std::current_exception();
    }
    trace.stop();
    const auto prefer = [&](const std::string& reason) {
      if (!reason.empty()) why = reason;
    };
    if (why.empty()) prefer(OperationTrace::difference(*one.rehearsed, trace));
    if (why.empty() && recording.values() != one.values) {
      why = "it takes other values from the host than in the step before";
    }
    prefer(trace.obstacle());
    prefer(recording.refusal());
  }
  if (of_program != nullptr) {  // later steps are rehearsed anew
    one.graph.reset();
    one.is_rehearsed = false;
    one.rehearsed.reset();
    ReplacingVisitor use_arguments(others);
    frame.visit_arguments(use_arguments, 0);
    std::rethrow_exception(of_program);
  }
  std::shared_ptr<const void> result;
  if (why.empty()) {
    result = frame.share_result(0);
    const HostFinder find_host;
    frame.set_result_of(result, find_host, 0);
    if (find_host.found()) why = "it returns a tensor of the host";
  }
  if (!why.empty()) {  // nothing has happened yet
    one.graph.reset();
    ReplacingVisitor use_arguments(others);
    frame.visit_arguments(use_arguments, 0);
    frame.call(context, 0);
    return refuse(why);
  }
  one.memory = one.rehearsed->lasting_memory();
  one.rehearsed.reset();
  one.host = std::move(host);
  one.inputs = std::move(copy.copies);
  one.result = std::move(result);
  one.is_recorded = true;
  replay(one, frame);
  while (num_graphs() > kMostGraphs) make_room();
}

void RecordedSteps::replay(Recorded& one, RunFrame& frame) {
  one.host->run();
  one.graph->replay();
  const Cloning clone;
  frame.set_result_of(one.result, clone, 0);
}

}  // namespace cohort::internal

namespace cohort::distribute {

StepGraphs::StepGraphs()
    : steps_(std::make_shared<internal::RecordedSteps>(internal::RecordedSteps::Options{})) {}

size_t StepGraphs::size() const { return steps_->num_graphs(); }

std::string StepGraphs::why_not() const { return steps_->why_not(); }

}  // namespace cohort::distribute
