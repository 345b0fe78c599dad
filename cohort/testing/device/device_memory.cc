#include "cohort/testing/device/device_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
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
  return host == nullptr
             ? nullptr
             : reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(host) | kDeviceBit);
}

void* host_address(const void* device) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(device) & ~kDeviceBit);
}

// The memory of all devices, by its address on the host, and how many tensors have taken it over.
struct Blocks {
  struct Block {
    size_t bytes = 0;
    int owners = 0;
    uint64_t number = 0;  // in the order in which they were made
  };
  std::mutex mutex;
  uint64_t made = 0;           // guarded by mutex
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

// The bytes that the devices' tensors have. An adopted tensor's count with each that adopts it.
struct Usage {
  std::atomic<int64_t> current = 0, peak = 0;
};
std::array<Usage, kMostDevices> usage_of;
std::atomic<int64_t> limit = std::numeric_limits<int64_t>::max();

// Memory of the host that plays a device's.
class Owned {
 public:
  // Errors: c10::OutOfMemoryError (above the limit).
  Owned(c10::Device device, int64_t bytes) : usage_(usage_of.at(device.index())), bytes_(bytes) {
    const int64_t current = usage_.current += bytes_;
    if (current > limit) {
      usage_.current -= bytes_;
      TORCH_CHECK_WITH(OutOfMemoryError, false, "simulated GPU out of memory. Tried to allocate ",
                       bytes_, " bytes. GPU ", static_cast<int>(device.index()),
                       " has a total capacity of ", limit.load(), " bytes of which ",
                       limit - current + bytes_, " bytes is free.");
    }
    for (int64_t peak = usage_.peak; peak < current;) {
      if (usage_.peak.compare_exchange_weak(peak, current)) break;
    }
  }
  ~Owned() {
    void* const memory = memory_ ? memory_.get() : tensor_.storage().data_ptr().get();
    release_memory(device_address(memory));
    remove_block(memory);
    usage_.current -= bytes_;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  void* allocate() {
    memory_ = c10::GetCPUAllocator()->allocate(static_cast<size_t>(bytes_));
    std::memset(memory_.get(), 0xff, static_cast<size_t>(bytes_));  // NaN, of whatever type
    add_block(memory_.get(), static_cast<size_t>(bytes_));
    return memory_.get();
  }
  void adopt(const at::Tensor& tensor) {
    tensor_ = tensor;
    add_block(base_of(tensor), static_cast<size_t>(bytes_));
  }

 private:
  Usage& usage_;
  const int64_t bytes_;
  c10::DataPtr memory_;
  at::Tensor tensor_;  // instead
};

void release(void* owner) { delete static_cast<Owned*>(owner); }

c10::DataPtr allocate_on(c10::Device device, size_t bytes) {
  if (bytes == 0) return {nullptr, nullptr, &release, device};
  auto owned = std::make_unique<Owned>(device, static_cast<int64_t>(bytes));
  void* const memory = device_address(owned->allocate());
  make_memory(memory, device);
  return {memory, owned.release(), &release, device};
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

config::MemoryInfo memory_in_use(int device) {
  const Usage& usage = usage_of.at(static_cast<size_t>(device));
  return {.current = usage.current, .peak = usage.peak};
}

void reset_peak(int device) {
  Usage& usage = usage_of.at(static_cast<size_t>(device));
  usage.peak = usage.current.load();
}

void set_memory_limit(int64_t bytes) { limit = bytes; }

c10::Allocator& device_allocator() {
  static auto* const allocator = new DeviceAllocator;
  return *allocator;
}

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
  c10::DataPtr data = allocate_on(device, 0);
  if (memory != nullptr) {
    auto owned = std::make_unique<Owned>(device, static_cast<int64_t>(host.storage().nbytes()));
    owned->adopt(host);
    data = {device_address(memory), owned.release(), &release, device};
  }
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

DeviceSnapshot::DeviceSnapshot()
    : last_([] {
        const std::lock_guard lock(blocks().mutex);
        return blocks().made;
      }()) {}

bool DeviceSnapshot::has(const at::Tensor& tensor) const {
  const std::lock_guard lock(blocks().mutex);
  const auto block = blocks().all.find(host_address(base_of(tensor)));
  return block != blocks().all.end() && block->second.number <= last_;
}

void DeviceSnapshot::save(const at::Tensor& tensor) {
  void* const address = host_address(base_of(tensor));
  const std::lock_guard lock(blocks().mutex);
  const auto block = blocks().all.find(address);
  if (block == blocks().all.end() || contents_.contains(address)) return;
  const auto* const first = static_cast<const char*>(address);
  contents_.emplace(address, std::vector<char>(first, first + block->second.bytes));
}

void DeviceSnapshot::put_back() const {
  const std::lock_guard lock(blocks().mutex);
  for (const auto& [address, before] : contents_) {
    const auto place = blocks().all.find(address);
    if (place == blocks().all.end()) continue;
    const auto& [bytes, owners, number] = place->second;
    if (number <= last_) {
      std::memcpy(address, before.data(), std::min(before.size(), bytes));
    } else {
      std::memset(address, 0xff, bytes);
    }
  }
}

}  // namespace cohort::testing
