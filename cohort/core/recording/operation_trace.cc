#include "cohort/core/recording/operation_trace.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

// libtorch's callbacks are plain functions, and follow a backward pass to its threads.
std::atomic<OperationTrace*> the_watcher{nullptr};

// The size of their results depends on values: the host waits for these.
bool has_size_of_values(const std::string& name) {
  static const auto* const names = new std::set<std::string>{
      "aten::nonzero",  "aten::masked_select",      "aten::_unique2",  "aten::unique_dim",
      "aten::_unique",  "aten::unique_consecutive", "aten::_coalesce", "aten::equal",
      "aten::bincount", "aten::repeat_interleave"};
  return names->contains(name);
}

// FNV-1a over whatever an argument is made of.
class Fingerprint {
 public:
  // What a tensor of the device is to the step.
  using Identity = FunctionRef<uint64_t(const Tensor&)>;
  Fingerprint(c10::Device device, Identity identity) : device_(device), identity_(identity) {}

  bool involves_device() const { return involves_device_; }
  uint64_t value() const { return hash_; }

  void add(uint64_t number) {
    for (int i = 0; i < 64; i += 8) hash_ = (hash_ ^ (number >> i & 0xff)) * 0x100000001b3ULL;
  }
  void add_text(const std::string& text) {
    for (const char letter : text) add(static_cast<unsigned char>(letter));
  }
  void add_bytes(const Tensor& host) {
    const auto* bytes = static_cast<const unsigned char*>(host.data_ptr());
    for (size_t i = 0; i < host.nbytes(); ++i) add(bytes[i]);
  }

  void add_tensor(const Tensor& tensor) {
    if (!tensor.defined()) return add(1);
    add(static_cast<uint64_t>(tensor.device().type()) + 2);
    add(static_cast<uint64_t>(tensor.scalar_type()));
    for (const int64_t size : tensor.sizes()) add(static_cast<uint64_t>(size));
    if (tensor.device().type() == device_.type()) {
      involves_device_ = true;
      add(identity_(tensor));
    }
    // A number beside tensors of the device, which its kernels take as it is.
    const bool is_number = tensor.is_cpu() && tensor.layout() == at::kStrided &&
                           tensor.numel() == 1 && tensor.unsafeGetTensorImpl()->has_storage();
    if (is_number) add_bytes(tensor);
  }

  void add_value(const c10::IValue& value) {
    if (value.isTensor()) return add_tensor(value.toTensor());
    if (value.isDouble()) return add(std::bit_cast<uint64_t>(value.toDouble()));
    if (value.isInt()) return add(static_cast<uint64_t>(value.toInt()));
    if (value.isBool()) return add(value.toBool() ? 3 : 4);
    if (value.isString()) return add_text(value.toStringRef());
    if (value.isDevice()) {
      if (value.toDevice().type() == device_.type()) involves_device_ = true;
      return;
    }
    if (!value.isList()) return add(5);
    const c10::List<c10::IValue> list = value.toList();
    add(list.size());
    for (size_t i = 0; i < list.size(); ++i) add_value(list.get(i));
  }

 private:
  const c10::Device device_;
  const Identity identity_;
  bool involves_device_ = false;
  uint64_t hash_ = 0xcbf29ce484222325ULL;
};

std::string shape_of(const Tensor& tensor) { return str("of shape ", shape_str(tensor.sizes())); }

}  // namespace

OperationTrace::OperationTrace(c10::Device device) : device_(device) {
  OperationTrace* nobody = nullptr;
  is_watching_ = the_watcher.compare_exchange_strong(nobody, this);
  if (!is_watching_) return;
  callback_ = at::addThreadLocalCallback(at::RecordFunctionCallback(on_operation, on_results)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
}

OperationTrace::~OperationTrace() { stop(); }

void OperationTrace::stop() {
  if (!std::exchange(is_watching_, false)) return;
  at::removeCallback(callback_);
  the_watcher = nullptr;
}

void OperationTrace::add_constant(const Tensor& host) {
  const auto none = [](const Tensor&) -> uint64_t { return 0; };
  Fingerprint fingerprint(device_, none);
  fingerprint.add_tensor(host);
  fingerprint.add_bytes(host.contiguous());
  const std::lock_guard lock(mutex_);
  operations_.push_back({fingerprint.value(), "constant"});
}

void OperationTrace::add_argument(const Tensor& tensor) {
  if (!has_memory(tensor)) return;
  const std::lock_guard lock(mutex_);
  identity_of(tensor, kMade + ++num_arguments_);
}

void OperationTrace::add_made(const Tensor& tensor) {
  if (!has_memory(tensor)) return;
  const std::lock_guard lock(mutex_);
  identity_of(tensor, kMade);
}

void OperationTrace::set_paused(bool paused) {
  const std::lock_guard lock(mutex_);
  paused_ = paused;
}

std::unique_ptr<at::ObserverContext> OperationTrace::on_operation(const at::RecordFunction& call) {
  if (OperationTrace* const watcher = the_watcher) watcher->add(call);
  return nullptr;
}

void OperationTrace::on_results(const at::RecordFunction& call, at::ObserverContext*) {
  OperationTrace* const watcher = the_watcher;
  if (watcher == nullptr) return;
  const std::lock_guard lock(watcher->mutex_);
  for (const c10::IValue& result : call.outputs()) watcher->add_results(result);
}

void OperationTrace::add(const at::RecordFunction& call) {
  const std::string name = call.name();
  // Calls that make views are noted; as_strided, within them, has also a place in the memory.
  if (!name.starts_with("aten::") || name == "aten::as_strided") return;
  const std::lock_guard lock(mutex_);
  if (paused_) return;
  // What was there before has an address that nothing else gets while this trace lives.
  const auto identity = [this](const Tensor& tensor) -> uint64_t {
    if (!has_memory(tensor)) return 0;
    const auto* const storage = tensor.storage().unsafeGetStorageImpl();
    return identity_of(tensor, reinterpret_cast<uintptr_t>(storage));
  };
  Fingerprint fingerprint(device_, identity);
  fingerprint.add_text(name);
  for (const c10::IValue& input : call.inputs()) fingerprint.add_value(input);
  if (!fingerprint.involves_device()) return;
  if (obstacle_.empty()) obstacle_ = obstacle_of(name, call.inputs());
  operations_.push_back({fingerprint.value(), name});
}

bool OperationTrace::has_memory(const Tensor& tensor) const {
  return tensor.defined() && tensor.device().type() == device_.type() &&
         tensor.layout() == at::kStrided;
}

uint64_t OperationTrace::identity_of(const Tensor& tensor, uint64_t otherwise) {
  const c10::Storage& storage = tensor.storage();
  const auto [place, is_new] = memory_.try_emplace(storage.unsafeGetStorageImpl(),
                                                   Memory{storage.getWeakStorageImpl(), otherwise});
  return place->second.identity;
}

void OperationTrace::add_results(const c10::IValue& value) {
  if (value.isTensorList()) {
    for (const Tensor& tensor : value.toTensorVector()) add_results(tensor);
    return;
  }
  if (value.isTensor() && has_memory(value.toTensor())) identity_of(value.toTensor(), kMade);
}

std::vector<c10::Storage> OperationTrace::lasting_memory() const {
  std::vector<c10::Storage> lasting;
  for (const auto& [address, memory] : memory_) {
    if (memory.identity <= kMade + num_arguments_) continue;
    if (auto storage = memory.storage.lock()) lasting.emplace_back(std::move(storage));
  }
  return lasting;
}

std::string OperationTrace::obstacle_of(const std::string& name,
                                        c10::ArrayRef<const c10::IValue> inputs) const {
  if (name == "aten::_local_scalar_dense") {
    return "it reads a number of the device, for which the host waits (item(), a condition)";
  }
  if (has_size_of_values(name)) {
    return str("the host waits for the size of the result of ", name);
  }
  if (name != "aten::copy_" || inputs.size() < 2 || !inputs[0].isTensor()) return "";
  const Tensor& to = inputs[0].toTensor();
  const Tensor& from = inputs[1].toTensor();
  if (to.is_cpu() && !from.is_cpu()) {
    return str("it copies a tensor ", shape_of(from), " to the host");
  }
  if (from.is_cpu() && !to.is_cpu()) {
    return str("it copies a tensor ", shape_of(from),
               " from the host, whose values may be others in the next step; pass it as an "
               "argument of the step");
  }
  return "";
}

std::string OperationTrace::difference(const OperationTrace& a, const OperationTrace& b) {
  std::multiset<uint64_t> left;
  for (const Operation& one : a.operations_) left.insert(one.fingerprint);
  for (const Operation& one : b.operations_) {
    const auto found = left.find(one.fingerprint);
    if (found == left.end()) {
      return str(one.name,
                 " has a number, shapes, or memory that is no argument's, that it has not in each "
                 "step");
    }
    left.erase(found);
  }
  if (left.empty()) return "";
  return "not each step calls the same operations";
}

}  // namespace cohort::internal
