#include "cohort/testing/device/device_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace cohort::testing {
namespace {

// An address on a device is that of the memory on the host with this bit set. No process may use
// such an address, neither on x86-64 (not canonical) nor on ARM64 (the kernel's half).
constexpr std::uintptr_t kDeviceBit = std::uintptr_t{1} << 55;

void* device_address(void* host) {
  return host == nullptr ? nullptr
                         : reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(host) | kDeviceBit);
}

void* host_address(const void* device) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(device) & ~kDeviceBit);
}

thread_local c10::DeviceIndex the_current_device = 0;

// The memory of all devices, by its address on the host, and how many tensors have taken it over.
struct Blocks {
  struct Block {
    size_t bytes = 0;
    int owners = 0;
    uint64_t number = 0;  // in the order in which they were made
  };
  std::mutex mutex;
  uint64_t made = 0;            // guarded by mutex
  std::map<void*, Block> all;  // guarded by mutex
};

// Never destroyed: tensors may outlive what is static.
Blocks& blocks() {
  static auto* const instance = new Blocks;
  return *instance;
}

void add_block(void* host, size_t bytes) {
  const std::lock_guard lock(blocks().mutex);
  Blocks::Block& block = blocks().all[host];
  block.bytes = std::max(block.bytes, bytes);
  if (block.owners++ == 0) block.number = ++blocks().made;
}

void remove_block(void* host) {
  const std::lock_guard lock(blocks().mutex);
  const auto place = blocks().all.find(host);
  if (place != blocks().all.end() && --place->second.owners == 0) blocks().all.erase(place);
}

void* base_of(const at::Tensor& tensor) {
#if TORCH_VERSION_MAJOR >= 2
  return tensor.storage().mutable_data();
#else
  return tensor.storage().data();
#endif
}

void release_tensor(void* owner) {
  auto* const tensor = static_cast<at::Tensor*>(owner);
  remove_block(base_of(*tensor));
  delete tensor;
}

void release_host_memory(void* owner) {
  auto* const memory = static_cast<c10::DataPtr*>(owner);
  if (memory != nullptr) remove_block(memory->get());
  delete memory;
}

c10::DataPtr allocate_on(c10::Device device, size_t bytes) {
  if (bytes == 0) return {nullptr, nullptr, &release_host_memory, device};
  auto host = std::make_unique<c10::DataPtr>(c10::GetCPUAllocator()->allocate(bytes));
  void* const memory = host->get();
  std::memset(memory, 0xff, bytes);  // NaN, whatever the floating-point type
  add_block(memory, bytes);
  return {device_address(memory), host.release(), &release_host_memory, device};
}

class DeviceAllocator final : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(size_t bytes) override {
#else
  c10::DataPtr allocate(size_t bytes) const override {
#endif
    return allocate_on({kSimulated, current_device()}, bytes);
  }
#if TORCH_VERSION_MAJOR >= 2
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(host_address(to), host_address(from), bytes);
  }
#endif
};

at::Tensor make_dense(c10::Storage storage, c10::DispatchKey key, const at::Tensor& like) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(key), like.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(),
                                                    like.storage_offset());
  return made;
}

}  // namespace

c10::Allocator& device_allocator() {
  static auto* const allocator = new DeviceAllocator;
  return *allocator;
}

c10::DeviceIndex current_device() { return the_current_device; }

void set_current_device(c10::DeviceIndex index) { the_current_device = index; }

bool is_simulated(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kSimulated;
}

at::Tensor host_view(const at::Tensor& tensor) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), tensor.storage().nbytes(),
                       c10::DataPtr(host_address(base_of(tensor)), c10::kCPU),
                       c10::GetCPUAllocator(), /*resizable=*/true);
  return make_dense(std::move(storage), c10::DispatchKey::CPU, tensor);
}

bool lies_in(const at::Tensor& view, const at::Tensor& tensor) {
  return base_of(view) == host_address(base_of(tensor));
}

at::Tensor adopt(const at::Tensor& host, c10::Device device) {
  void* const memory = base_of(host);
  if (memory != nullptr) add_block(memory, host.storage().nbytes());
  c10::DataPtr data = memory == nullptr
                          ? allocate_on(device, 0)
                          : c10::DataPtr(device_address(memory), new at::Tensor(host),
                                         &release_tensor, device);
  c10::Storage storage(c10::Storage::use_byte_size_t(), host.storage().nbytes(), std::move(data),
                       &device_allocator(), /*resizable=*/true);
  return make_dense(std::move(storage), kSimulatedKey, host);
}

at::Tensor tensor_at(c10::Storage memory, caffe2::TypeMeta dtype, at::IntArrayRef sizes,
                     at::IntArrayRef strides, int64_t offset) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(memory), c10::DispatchKeySet(kSimulatedKey), dtype);
  made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return made;
}

at::Tensor alias_of(const at::Tensor& tensor) {
  return tensor_at(tensor.storage(), tensor.dtype(), tensor.sizes(), tensor.strides(),
                   tensor.storage_offset());
}

DeviceSnapshot::DeviceSnapshot() {
  const std::lock_guard lock(blocks().mutex);
  last_ = blocks().made;
  for (const auto& [address, block] : blocks().all) {
    const auto* const first = static_cast<const char*>(address);
    contents_.emplace(address, std::vector<char>(first, first + block.bytes));
  }
}

bool DeviceSnapshot::has(const at::Tensor& tensor) const {
  const std::lock_guard lock(blocks().mutex);
  const auto block = blocks().all.find(host_address(base_of(tensor)));
  return block != blocks().all.end() && block->second.number <= last_;
}

void DeviceSnapshot::put_back() const {
  const std::lock_guard lock(blocks().mutex);
  for (const auto& [address, block] : blocks().all) {
    if (block.number <= last_) {
      const std::vector<char>& before = contents_.at(address);
      std::memcpy(address, before.data(), std::min(before.size(), block.bytes));
    } else {
      std::memset(address, 0xff, block.bytes);
    }
  }
}

}  // namespace cohort::testing
