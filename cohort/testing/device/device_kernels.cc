// The operations of simulated GPUs: each runs libtorch's kernel of the CPU on views of the device's
// memory.
#include <ATen/EmptyTensor.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cohort/testing/device/device_memory.h"
#include "cohort/testing/device/device_order.h"
#include "cohort/testing/device/device_recording.h"
#include "cohort/testing/device/simulated_gpus.h"

namespace cohort::testing {
namespace {

using at::Tensor;
using OptionalTensor = c10::optional<Tensor>;

struct {
  std::atomic<int64_t> to_device = 0, to_host = 0, between_devices = 0, host_waits = 0, kernels = 0;
} counts;

// What a graph does again counts as one kernel.
void count(std::atomic<int64_t>& number) {
  if (!is_replaying()) ++number;
}

// Operations of which CUDA's kernels wait for the device, since a size depends on the values.
bool waits(const std::string& operation) {
  static const auto* const names = new std::set<std::string>{
      "aten::nonzero", "aten::masked_select",      "aten::_unique2",         "aten::unique_dim",
      "aten::_unique", "aten::unique_consecutive", "aten::repeat_interleave"};
  return names->contains(operation);
}

// The host waits until what the calling thread has queued on its device is done.
// Errors: c10::Error (a graph is being recorded).
void wait_for_device(const std::string& operation,
                     c10::Device device = c10::Device(kSimulated, current_device())) {
  Recorder::refuse_to_wait(operation);
  count(counts.host_waits);
  host_waited_for(moment_of(stream_of_thread(device)));
}

// Operations that take indices of the host beside values of the device, as CUDA's do.
bool takes_host_indices(const std::string& operation) {
  static const auto* const names = new std::set<std::string>{
      "aten::index", "aten::index_put_", "aten::_index_put_impl_", "aten::index_put"};
  return names->contains(operation);
}

at::SparseTensorImpl* sparse_impl(const Tensor& tensor) {
  return static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

// A sparse tensor where its indices are.
Tensor make_sparse(const Tensor& indices, const Tensor& values, c10::IntArrayRef sizes) {
  const auto key = is_simulated(indices) ? c10::DispatchKey::COHORT_SIMULATED_SPARSE
                                         : c10::DispatchKey::SparseCPU;
  Tensor made =
      at::detail::make_tensor<at::SparseTensorImpl>(c10::DispatchKeySet(key), values.dtype());
  sparse_impl(made)->resize_(indices.size(0), values.dim() - 1, sizes);
  sparse_impl(made)->set_indices_and_values_unsafe(indices, values);
  return made;
}

// An operation's arguments as the host has them, and how results come back to the device.
class HostCall {
 public:
  HostCall(const c10::OperatorHandle& operation, torch::jit::Stack& stack)
      : schema_(operation.schema()),
        stack_(stack),
        arguments_(stack.end() - static_cast<std::ptrdiff_t>(schema_.arguments().size()),
                   stack.end()) {
    find_device();
    operation_.emplace(device_);
    const size_t first = stack.size() - arguments_.size();
    for (size_t i = 0; i < arguments_.size(); ++i) {
      is_written_ = writes(schema_.arguments()[i].alias_info());
      stack[first + i] = to_host(arguments_[i]);
    }
  }

  // After the call, which has replaced the arguments on the stack by its results.
  void bring_results_back() {
    for (const auto& [device, host] : views_) follow(device, host);
    for (const auto& [device, host] : sparse_views_) {
      sparse_impl(device)->set_coalesced(sparse_impl(host)->coalesced());
    }
    const size_t first = stack_.size() - schema_.returns().size();
    for (size_t i = 0; i < schema_.returns().size(); ++i) {
      stack_[first + i] = to_device(stack_[first + i], schema_.returns()[i]);
    }
  }

 private:
  static bool writes(const c10::AliasInfo* alias) {
    if (alias == nullptr) return false;
    const auto& of_list = alias->containedTypes();
    return alias->isWrite() || std::any_of(of_list.begin(), of_list.end(),
                                           [](const auto& one) { return one.isWrite(); });
  }

  void find_device() {
    for (const c10::IValue& argument : arguments_) {
      if (argument.isTensor()) note(argument.toTensor());
      if (argument.isTensorList()) {
        for (const Tensor& tensor : argument.toTensorVector()) note(tensor);
      }
      if (argument.isDevice() && argument.toDevice().type() == kSimulated)
        device_ = argument.toDevice();
      if (argument.isGenerator() && argument.toGenerator().defined()) {
        TORCH_CHECK(argument.toGenerator().device().type() == kSimulated, schema_.name(),
                    ": expected a generator of the device, but found one of the CPU");
      }
    }
    if (!device_.has_index()) device_ = c10::Device(kSimulated, current_device());
    for (const c10::IValue& argument : arguments_) {
      if (argument.isTensor()) check(argument.toTensor());
      if (argument.isTensorList()) {
        for (const Tensor& tensor : argument.toTensorVector()) check(tensor);
      }
    }
  }

  void note(const Tensor& tensor) {
    if (is_simulated(tensor) && !device_.has_index()) device_ = tensor.device();
  }

  void check(const Tensor& tensor) const {
    if (!tensor.defined() || tensor.device() == device_) return;
    const bool is_number = tensor.is_cpu() && tensor.dim() == 0;
    if (is_number || (tensor.is_cpu() && takes_host_indices(schema_.name()))) return;
    TORCH_CHECK(false, schema_.name(),
                ": Expected all tensors to be on the same device, but found at least two devices, ",
                device_, " and ", tensor.device(), "!");
  }

  Tensor to_host(const Tensor& tensor) {
    if (!is_simulated(tensor)) return tensor;
    if (tensor.is_sparse()) {
      const Tensor host = make_sparse(to_host(sparse_impl(tensor)->indices()),
                                      to_host(sparse_impl(tensor)->values()), tensor.sizes());
      sparse_impl(host)->set_coalesced(sparse_impl(tensor)->coalesced());
      sparse_views_.emplace_back(tensor, host);
      return host;
    }
    is_written_ ? operation_->writes(tensor) : operation_->reads(tensor);
    views_.emplace_back(tensor, host_view(tensor));
    return views_.back().second;
  }

  c10::IValue to_host(const c10::IValue& argument) {
    if (argument.isTensor()) return to_host(argument.toTensor());
    if (argument.isTensorList()) {
      std::vector<Tensor> tensors = argument.toTensorVector();
      for (Tensor& tensor : tensors) tensor = to_host(tensor);
      return tensors;
    }
    if (argument.isList()) {  // of optional tensors, perhaps
      const c10::List<c10::IValue> list = argument.toList();
      if (!list.elementType()->isSubtypeOf(*c10::OptionalType::ofTensor())) return argument;
      c10::List<OptionalTensor> tensors;
      for (size_t i = 0; i < list.size(); ++i) {
        const c10::IValue element = list.get(i);
        if (element.isNone()) {
          tensors.push_back(c10::nullopt);
        } else {
          check(element.toTensor());
          tensors.push_back(to_host(element.toTensor()));
        }
      }
      return tensors;
    }
    if (argument.isDevice() && argument.toDevice().type() == kSimulated) {
      return c10::Device(c10::kCPU);
    }
    return argument;
  }

  // Lets a device tensor follow what the call made of its view: another shape, perhaps more memory.
  void follow(const Tensor& device, const Tensor& host) const {
    if (!lies_in(host, device)) {
      device.unsafeGetTensorImpl()->set_storage_keep_dtype(adopt(host, device_).storage());
      operation_->writes(device);
    }
    if (device.sizes() != host.sizes() || device.strides() != host.strides() ||
        device.storage_offset() != host.storage_offset()) {
      device.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides(),
                                                          host.storage_offset());
    }
  }

  c10::IValue to_device(const c10::IValue& result, const c10::Argument& description) const {
    if (const c10::AliasInfo* const alias = description.alias_info();
        alias != nullptr && alias->isWrite()) {
      for (size_t i = 0; i < arguments_.size(); ++i) {
        const c10::AliasInfo* const argument = schema_.arguments()[i].alias_info();
        if (argument != nullptr && argument->beforeSets() == alias->beforeSets()) {
          return arguments_[i];
        }
      }
    }
    if (result.isTensor()) return to_device(result.toTensor());
    if (result.isTensorList()) {
      std::vector<Tensor> tensors = result.toTensorVector();
      for (Tensor& tensor : tensors) tensor = to_device(tensor);
      return tensors;
    }
    wait_for_device(schema_.name(), device_);  // for a number, which the host has now
    return result;
  }

  Tensor to_device(const Tensor& host) const {
    if (!host.defined()) return host;
    if (host.is_sparse()) {
      const Tensor device = make_sparse(to_device(sparse_impl(host)->indices()),
                                        to_device(sparse_impl(host)->values()), host.sizes());
      sparse_impl(device)->set_coalesced(sparse_impl(host)->coalesced());
      return device;
    }
    for (const auto& [device, view] : views_) {
      if (host.numel() > 0 && lies_in(host, device)) {
        return at::native::as_strided_tensorimpl(device, host.sizes(), host.strides(),
                                                 host.storage_offset());
      }
    }
    Tensor made = adopt(host, device_);
    operation_->writes(made);
    return made;
  }

  const c10::FunctionSchema& schema_;
  torch::jit::Stack& stack_;
  const std::vector<c10::IValue> arguments_;
  c10::Device device_{kSimulated};
  std::optional<StreamOperation> operation_;
  bool is_written_ = false;                       // the argument that goes to the host
  std::vector<std::pair<Tensor, Tensor>> views_;  // dense device tensor, host view
  std::vector<std::pair<Tensor, Tensor>> sparse_views_;
};

Tensor without_half(const Tensor& host) {
  return host.defined() && host.scalar_type() == at::kHalf ? host.to(at::kFloat) : host;
}

c10::IValue without_half(const c10::IValue& argument) {
  if (argument.isTensor()) return without_half(argument.toTensor());
  if (!argument.isTensorList()) return argument;
  std::vector<Tensor> tensors = argument.toTensorVector();
  for (Tensor& tensor : tensors) tensor = without_half(tensor);
  return tensors;
}

// The results of a call without float16, as one with it would have given them: what it has written
// to stands in the arguments.
void round_to_half(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& arguments,
                   const std::vector<c10::IValue>& wide, torch::jit::Stack& stack) {
  const auto writes = [](const c10::Argument& argument) {
    return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!writes(schema.arguments()[i]) || !arguments[i].isTensor()) continue;
    arguments[i].toTensor().copy_(wide[i].toTensor());
  }
  const size_t first = stack.size() - schema.returns().size();
  for (size_t i = first; i < stack.size(); ++i) {
    const bool is_new = !writes(schema.returns()[i - first]);
    if (!is_new || !stack[i].isTensor() || !stack[i].toTensor().defined()) continue;
    const Tensor result = stack[i].toTensor();
    if (result.scalar_type() == at::kFloat) stack[i] = result.to(at::kHalf);
  }
}

// GPUs have kernels of float16, which libtorch's CPU lacks: such a call computes in float32, and
// its results are rounded.
void call_on_host(const c10::OperatorHandle& operation, torch::jit::Stack& stack) {
  const c10::FunctionSchema& schema = operation.schema();
  const auto begin = stack.end() - static_cast<std::ptrdiff_t>(schema.arguments().size());
  const auto below = begin - stack.begin();
  const std::vector<c10::IValue> arguments(begin, stack.end());
  try {
    return operation.callBoxed(stack);
  } catch (const c10::Error& error) {
    if (std::string_view(error.what()).find("'Half'") == std::string_view::npos) throw;
  }
  std::vector<c10::IValue> wide;
  for (const c10::IValue& argument : arguments) wide.push_back(without_half(argument));
  stack.erase(stack.begin() + below, stack.end());
  stack.insert(stack.end(), wide.begin(), wide.end());
  operation.callBoxed(stack);
  round_to_half(schema, arguments, wide, stack);
}

void run_on_device(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  count(counts.kernels);
  if (waits(operation.schema().name())) wait_for_device(operation.schema().name());
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  std::optional<RecordedCall> recorded;
  if (Recorder* const recorder = Recorder::active()) recorded.emplace(*recorder, operation, *stack);
  HostCall call(operation, *stack);
  call_on_host(operation, *stack);
  call.bring_results_back();
  if (recorded) recorded->add(*stack, run_on_device);
}

Tensor empty(c10::IntArrayRef size, c10::optional<at::ScalarType> dtype, c10::optional<at::Layout>,
             c10::optional<c10::Device> device, c10::optional<bool> pinned,
             c10::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!pinned.value_or(false), "only memory of the host can be pinned");
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(size, &device_allocator(), c10::DispatchKeySet(kSimulatedKey),
                                   c10::dtype_or_default(dtype), format);
}

Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef strides,
                     c10::optional<at::ScalarType> dtype, c10::optional<at::Layout>,
                     c10::optional<c10::Device> device, c10::optional<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(size, strides, &device_allocator(),
                                           c10::DispatchKeySet(kSimulatedKey),
                                           c10::dtype_or_default(dtype));
}

void copy(const Tensor& from, const Tensor& to) {
  const c10::Device device = is_simulated(from) ? from.device() : to.device();
  const bool is_between = is_simulated(from) && is_simulated(to) && from.device() != to.device();
  if (is_between) order_together(stream_of_thread(from.device()), stream_of_thread(to.device()));
  const StreamOperation operation(device);
  operation.reads(from);
  operation.writes(to);
  if (is_between) order_together(stream_of_thread(from.device()), stream_of_thread(to.device()));
  const Tensor target = is_simulated(to) ? host_view(to) : to;
  target.copy_(is_simulated(from) ? host_view(from) : from);
}

// What comes from the host is part of the graph. What goes there goes there in each replay.
void record_copy(Recorder& recorder, const Tensor& from, const Tensor& to) {
  if (is_simulated(to)) recorder.save(to);
  if (!is_simulated(to)) {
    recorder.add({from}, {}, [to](const Tensors& tensors) {
      copy(tensors[0], to);
      return Tensors();
    });
  } else if (!is_simulated(from)) {
    recorder.add({to}, {}, [from = from.clone()](const Tensors& tensors) {
      copy(from, tensors[0]);
      return Tensors();
    });
  } else {
    recorder.add({from, to}, {}, [](const Tensors& tensors) {
      copy(tensors[0], tensors[1]);
      return Tensors();
    });
  }
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool non_blocking) {
  if (!is_simulated(from)) {
    count(counts.to_device);
  } else if (!is_simulated(to)) {
    count(counts.to_host);
  } else {
    count(from.device() != to.device() ? counts.between_devices : counts.kernels);
  }
  Recorder* const recorder = Recorder::active();
  if (recorder != nullptr) record_copy(*recorder, from, to);
  if (recorder == nullptr || is_simulated(to)) copy(from, to);
  const bool with_host = !is_simulated(from) || !is_simulated(to);
  if (with_host && !non_blocking) {
    wait_for_device("copy_", is_simulated(from) ? from.device() : to.device());
  }
  return to;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar read_number(const Tensor& tensor) {
  StreamOperation(tensor.device()).reads(tensor);
  count(counts.to_host);
  wait_for_device("item", tensor.device());
  return host_view(tensor).item();
}

const Tensor& resize(const Tensor& tensor, c10::IntArrayRef size,
                     c10::optional<at::MemoryFormat> format) {
  const StreamOperation operation(tensor.device());
  const Tensor host = host_view(tensor);
  host.resize_(size, format);
  auto* const impl = tensor.unsafeGetTensorImpl();
  if (!lies_in(host, tensor)) {
    operation.reads(tensor);
    impl->set_storage_keep_dtype(adopt(host, tensor.device()).storage());
    operation.writes(tensor);
  }
  impl->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
  return tensor;
}

Tensor make_sparse_of_parts(int64_t, int64_t, c10::IntArrayRef sizes, const Tensor& indices,
                            const Tensor& values, c10::optional<at::ScalarType>,
                            c10::optional<at::Layout>, c10::optional<c10::Device>,
                            c10::optional<bool>
#if TORCH_VERSION_MAJOR >= 2
                            ,
                            c10::optional<bool>  // whether it is coalesced
#endif
) {
  return make_sparse(indices, values, sizes);
}

Tensor indices_of(const Tensor& sparse) { return sparse_impl(sparse)->indices(); }
Tensor values_of(const Tensor& sparse) { return sparse_impl(sparse)->values(); }

// Calls compute(arguments) for an operation without a kernel to fall back from, and notes it where
// a graph is recorded.
Tensors run_alone(const Tensors& arguments, std::function<Tensors(const Tensors&)> compute) {
  count(counts.kernels);
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  const auto in_order = [compute = std::move(compute)](const Tensors& tensors) {
    const StreamOperation operation(tensors[0].device());
    for (const Tensor& read : tensors) operation.reads(read);
    Tensors results = compute(tensors);
    for (const Tensor& made : results) operation.writes(made);
    return results;
  };
  Tensors results = in_order(arguments);
  if (Recorder* const recorder = Recorder::active()) recorder->add(arguments, results, in_order);
  return results;
}

Tensor convolution(const Tensor& input, const Tensor& weight, const OptionalTensor& bias,
                   c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation,
                   bool transposed, c10::IntArrayRef output_padding, int64_t groups) {
  TORCH_CHECK(is_simulated(input) && weight.device() == input.device(),
              "Expected all tensors to be on the same device, but found ", input.device(), " and ",
              weight.device());
  Tensors arguments = {input, weight};
  if (bias && bias->defined()) arguments.push_back(*bias);
  const auto compute = [=, strides = stride.vec(), paddings = padding.vec(),
                        dilations = dilation.vec(),
                        output_paddings = output_padding.vec()](const Tensors& tensors) -> Tensors {
    const auto on_host = [&](size_t i) { return without_half(host_view(tensors[i])); };
    OptionalTensor host_bias;
    if (tensors.size() > 2) host_bias = on_host(2);
    const Tensor made = at::convolution(on_host(0), on_host(1), host_bias, strides, paddings,
                                        dilations, transposed, output_paddings, groups);
    return {adopt(made.to(tensors[0].scalar_type()), tensors[0].device())};
  };
  return run_alone(arguments, compute)[0];
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& gradient, const Tensor& input, const Tensor& weight, c10::IntArrayRef stride,
    c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed,
    c10::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> wanted) {
  const int64_t outputs = transposed ? weight.size(1) * groups : weight.size(0);
  const auto compute = [=, strides = stride.vec(), paddings = padding.vec(),
                        dilations = dilation.vec(),
                        output_paddings = output_padding.vec()](const Tensors& tensors) {
    const auto on_host = [&](size_t i) { return without_half(host_view(tensors[i])); };
    const auto [of_input, of_weight, of_bias] = at::convolution_backward(
        on_host(0), on_host(1), on_host(2), c10::IntArrayRef(outputs), strides, paddings, dilations,
        transposed, output_paddings, groups, wanted);
    Tensors results;
    for (const Tensor& host : {of_input, of_weight, of_bias}) {
      if (!host.defined()) continue;
      results.push_back(adopt(host.to(tensors[1].scalar_type()), tensors[1].device()));
    }
    return results;
  };
  const Tensors results = run_alone({gradient, input, weight}, compute);
  size_t next = 0;
  const auto result = [&](size_t i) { return wanted[i] ? results[next++] : Tensor(); };
  const Tensor of_input = result(0), of_weight = result(1), of_bias = result(2);
  return {of_input, of_weight, of_bias};
}

// libtorch takes fused kernels of a cell on this kind of device, which its CPU has not: in single
// operations, which autograd records.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& state_gates,
                                             const Tensor& state, const OptionalTensor& input_bias,
                                             const OptionalTensor& state_bias) {
  Tensor gates = input_gates + state_gates;
  if (input_bias && input_bias->defined()) gates = gates + *input_bias;
  if (state_bias && state_bias->defined()) gates = gates + *state_bias;
  const auto parts = gates.chunk(4, 1);
  const Tensor next = parts[1].sigmoid() * state + parts[0].sigmoid() * parts[2].tanh();
  return {parts[3].sigmoid() * next.tanh(), next, Tensor()};
}

std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& state_gates,
                                    const Tensor& state, const OptionalTensor& input_bias,
                                    const OptionalTensor& state_bias) {
  const auto with_bias = [](const Tensor& gates, const OptionalTensor& bias) {
    return (bias && bias->defined() ? gates + *bias : gates).chunk(3, 1);
  };
  const auto of_input = with_bias(input_gates, input_bias);
  const auto of_state = with_bias(state_gates, state_bias);
  const Tensor reset = (of_input[0] + of_state[0]).sigmoid();
  const Tensor update = (of_input[1] + of_state[1]).sigmoid();
  const Tensor fresh = (of_input[2] + reset * of_state[2]).tanh();
  return {(state - fresh) * update + fresh, Tensor()};
}

TORCH_LIBRARY_IMPL(aten, COHORT_SIMULATED_AUTOGRAD, library) {
  library.impl("_thnn_fused_lstm_cell", lstm_cell);
  library.impl("_thnn_fused_gru_cell", gru_cell);
}

TORCH_LIBRARY_IMPL(_, COHORT_SIMULATED_DEVICE, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_device>());
}

TORCH_LIBRARY_IMPL(aten, COHORT_SIMULATED_DEVICE, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("_local_scalar_dense", read_number);
  library.impl("resize_", resize);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", static_cast<Tensor (*)(const Tensor&, c10::IntArrayRef)>(at::native::view));
  library.impl("_reshape_alias", at::native::_reshape_alias);
  library.impl("convolution_overrideable", convolution);
  library.impl("convolution_backward_overrideable", convolution_backward);
}

TORCH_LIBRARY_IMPL(_, COHORT_SIMULATED_SPARSE, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_device>());
}

TORCH_LIBRARY_IMPL(aten, COHORT_SIMULATED_SPARSE, library) {
  library.impl("_sparse_coo_tensor_with_dims_and_tensors", make_sparse_of_parts);
  library.impl("_indices", indices_of);
  library.impl("_values", values_of);
  library.impl("sparse_dim",
               [](const Tensor& sparse) { return sparse_impl(sparse)->sparse_dim(); });
  library.impl("dense_dim", [](const Tensor& sparse) { return sparse_impl(sparse)->dense_dim(); });
  library.impl("_nnz", [](const Tensor& sparse) { return sparse_impl(sparse)->nnz(); });
  library.impl("is_coalesced",
               [](const Tensor& sparse) { return sparse_impl(sparse)->coalesced(); });
}

}  // namespace

DeviceCounts DeviceCounts::operator-(const DeviceCounts& earlier) const {
  return {.to_device = to_device - earlier.to_device,
          .to_host = to_host - earlier.to_host,
          .between_devices = between_devices - earlier.between_devices,
          .host_waits = host_waits - earlier.host_waits,
          .kernels = kernels - earlier.kernels,
          .replays = replays - earlier.replays};
}

DeviceCounts device_counts() {
  return {.to_device = counts.to_device,
          .to_host = counts.to_host,
          .between_devices = counts.between_devices,
          .host_waits = counts.host_waits,
          .kernels = counts.kernels + num_replays(),
          .replays = num_replays()};
}

}  // namespace cohort::testing
