#include "cohort/testing/device/device_recording.h"

#include <ATen/SparseTensorImpl.h>
#include <ATen/ops/empty.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <atomic>
#include <optional>
#include <tuple>
#include <utility>

#include "cohort/testing/device/device_memory.h"

namespace cohort::testing {
namespace {

using at::Tensor;

std::atomic<int64_t> replays = 0;
thread_local bool replaying = false;

// A dense tensor of a device, by its memory.
class Place {
 public:
  Place(const Tensor& tensor, bool is_of_graph)
      : memory_(tensor.storage().getWeakStorageImpl()),
        form_(tensor.dtype(), tensor.sizes().vec(), tensor.strides().vec(),
              tensor.storage_offset()) {
    if (is_of_graph) own_ = tensor.storage();
  }

  Tensor tensor() const {
    auto memory = memory_.lock();
    TORCH_CHECK(memory, "a graph was replayed that uses memory which was freed since");
    const auto& [dtype, sizes, strides, offset] = form_;
    return tensor_at(c10::Storage(std::move(memory)), dtype, sizes, strides, offset);
  }

 private:
  c10::weak_intrusive_ptr<c10::StorageImpl> memory_;
  std::tuple<caffe2::TypeMeta, std::vector<int64_t>, std::vector<int64_t>, int64_t> form_;
  std::optional<c10::Storage> own_;
};

bool is_dense(const Tensor& tensor) {
  return is_simulated(tensor) && tensor.layout() == at::kStrided;
}

// Calls visit(tensor) for the dense device tensors of a value, those of sparse ones included.
template <class Visit>
void visit_dense(const Tensor& tensor, const Visit& visit) {
  if (is_dense(tensor)) return visit(tensor);
  if (!is_simulated(tensor)) return;
  const auto* const sparse = static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
  visit(sparse->indices());
  visit(sparse->values());
}
template <class Visit>
void visit_dense(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) return visit_dense(value.toTensor(), visit);
  if (!value.isList()) return;
  const c10::List<c10::IValue> list = value.toList();
  for (size_t i = 0; i < list.size(); ++i) visit_dense(list.get(i), visit);
}

template <class Values>
Tensors dense_tensors(const Values& values) {
  Tensors tensors;
  for (const auto& value : values) {
    visit_dense(value, [&](const Tensor& tensor) { tensors.push_back(tensor); });
  }
  return tensors;
}

// The value with its tensors replaced by map(tensor).
template <class Map>
c10::IValue with_tensors(const c10::IValue& value, const Map& map) {
  if (value.isTensor()) return map(value.toTensor());
  if (value.isTensorList()) {
    Tensors tensors = value.toTensorVector();
    for (Tensor& tensor : tensors) tensor = map(tensor);
    return tensors;
  }
  if (!value.isList()) return value;
  const c10::List<c10::IValue> list = value.toList();
  if (!list.elementType()->isSubtypeOf(*c10::OptionalType::ofTensor())) return value;
  c10::List<c10::optional<Tensor>> tensors;
  for (size_t i = 0; i < list.size(); ++i) {
    const c10::IValue element = list.get(i);
    tensors.push_back(element.isNone() ? c10::optional<Tensor>()
                                       : c10::optional<Tensor>(map(element.toTensor())));
  }
  return tensors;
}

class SimulatedGraph final : public internal::DeviceGraph, public Recorder {
 public:
  explicit SimulatedGraph(c10::Device device) : device_(device) {}

  void rehearse(FunctionRef<void()> work) override { work(); }

  void record(FunctionRef<void()> work) override;

  void replay() override {
    ++replays;
    const auto outer = std::exchange(replaying, true);
    struct Ended {
      bool outer;
      ~Ended() { replaying = outer; }
    } ended{outer};
    for (const auto& step : steps_) step();
  }

  bool records_now() const { return stream_of_thread(device_) == stream_; }

  void save(const Tensor& tensor) override { before_->save(tensor); }

  void add(const Tensors& arguments, const Tensors& results,
           std::function<Tensors(const Tensors&)> again) override {
    for (const Tensor& made : results) before_->save(made);
    steps_.push_back([this, from = places(arguments), to = places(results),
                      again = std::move(again)] {
      Tensors now;
      for (const Place& place : from) now.push_back(place.tensor());
      const Tensors made = again(now);
      TORCH_CHECK(made.size() == to.size(), "a replayed operation has another number of results");
      for (size_t i = 0; i < made.size(); ++i) put(made[i], to[i].tensor());
    });
  }

 private:
  std::vector<Place> places(const Tensors& tensors) const {
    std::vector<Place> places;
    for (const Tensor& tensor : tensors) places.emplace_back(tensor, !before_->has(tensor));
    return places;
  }

  static void put(const Tensor& made, const Tensor& target) {
    TORCH_CHECK(made.sizes() == target.sizes(), "a replayed operation has a result of shape ",
                made.sizes(), " instead of ", target.sizes());
    if (made.numel() == 0 || made.data_ptr() == target.data_ptr()) return;
    host_view(target).copy_(host_view(made));
  }

  const c10::Device device_;
  c10::Stream stream_ = stream_of_thread(device_);  // that it records, or has
  std::unique_ptr<DeviceSnapshot> before_;          // while it records
  std::vector<std::function<void()>> steps_;
};

// The graph that the calling thread records. As CUDA's captures it is of one thread, with those of
// its backward passes, to which libtorch hands such information on.
struct RecordedGraph final : c10::DebugInfoBase {
  explicit RecordedGraph(SimulatedGraph* of) : graph(of) {}
  SimulatedGraph* const graph;
};
constexpr c10::DebugInfoKind kRecordedGraph = c10::DebugInfoKind::TEST_INFO;

// Operations run, since others ask for the form of their results; afterwards the devices' memory is
// what it was.
void SimulatedGraph::record(FunctionRef<void()> work) {
  before_ = std::make_unique<DeviceSnapshot>();
  stream_ = stream_of_thread(device_);
  struct Ended {
    SimulatedGraph& graph;
    ~Ended() { std::exchange(graph.before_, nullptr)->put_back(); }
  } ended{*this};
  const c10::DebugInfoGuard of_thread(kRecordedGraph, std::make_shared<RecordedGraph>(this));
  work();
}

}  // namespace

std::unique_ptr<internal::DeviceGraph> make_simulated_graph(c10::Device device) {
  return std::make_unique<SimulatedGraph>(device);
}

int64_t num_replays() { return replays; }
bool is_replaying() { return replaying; }

Recorder* Recorder::active() {
  const auto* const info =
      static_cast<RecordedGraph*>(c10::ThreadLocalDebugInfo::get(kRecordedGraph));
  return info != nullptr && info->graph->records_now() ? info->graph : nullptr;
}

void Recorder::refuse_to_wait(const std::string& operation) {
  TORCH_CHECK(active() == nullptr, operation,
              ": the host would wait for the device, of which a graph is recorded");
}

RecordedCall::RecordedCall(Recorder& recorder, const c10::OperatorHandle& operation,
                           const torch::jit::Stack& stack)
    : recorder_(recorder),
      operation_(operation),
      arguments_(stack.end() - static_cast<std::ptrdiff_t>(operation.schema().arguments().size()),
                 stack.end()) {
  // Stands for a dense tensor, which would keep its memory alive.
  static const Tensor placeholder = adopt(at::empty({0}), c10::Device(kSimulated, 0));
  for (const c10::IValue& argument : arguments_) {
    forms_.push_back(with_tensors(argument, [&](const Tensor& tensor) {
      if (!is_dense(tensor)) return tensor.defined() && tensor.is_cpu() ? tensor.clone() : tensor;
      recorder.save(tensor);
      before_.push_back(alias_of(tensor));  // an operation may give it another form
      return placeholder;
    }));
  }
}

void RecordedCall::add(const torch::jit::Stack& stack, Run run) const {
  const auto count = static_cast<std::ptrdiff_t>(operation_.schema().returns().size());
  // What an operation has written to its arguments is a result, too.
  const auto results_of = [count](const std::vector<c10::IValue>& arguments,
                                  const torch::jit::Stack& results) {
    Tensors tensors = dense_tensors(arguments);
    for (const Tensor& tensor :
         dense_tensors(std::vector<c10::IValue>(results.end() - count, results.end()))) {
      tensors.push_back(tensor);
    }
    return tensors;
  };
  const auto again = [=, operation = operation_, forms = forms_](const Tensors& tensors) {
    std::vector<c10::IValue> arguments;
    size_t next = 0;
    for (const c10::IValue& form : forms) {
      arguments.push_back(with_tensors(
          form, [&](const Tensor& tensor) { return is_dense(tensor) ? tensors[next++] : tensor; }));
    }
    torch::jit::Stack results(arguments.begin(), arguments.end());
    run(operation, &results);
    return results_of(arguments, results);
  };
  recorder_.add(before_, results_of(arguments_, stack), again);
}

}  // namespace cohort::testing
