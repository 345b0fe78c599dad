#include "cohort/testing/device/device_order.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "cohort/core/error.h"

namespace cohort::testing {
namespace {

// The times of a stream begin with 1; 0 is never.
struct Memory {
  int made_on = -1;  // the stream that allocated it, or of its first operation
  int written_by = -1;
  uint64_t written = 0;
  StreamClock read = {};
  std::array<bool, std::tuple_size_v<StreamClock>> kept = {};  // for streams besides that
};

// Guarded by mutex.
struct State {
  std::mutex mutex;
  std::array<StreamClock, std::tuple_size_v<StreamClock>> streams = {};
  StreamClock host = {};
  std::unordered_map<const void*, Memory> memories;
  std::string fault;  // of memory that was released
  int next_of_pool = 1;
};

State& state() {
  static auto* const instance = new State;
  return *instance;
}

thread_local c10::DeviceIndex the_current_device = 0;
thread_local std::array<int, kMostDevices> streams_of_thread = {};

int number_of(c10::Stream stream) {
  return stream.device_index() * kStreamsOfDevice + static_cast<int>(stream.id());
}

std::string name_of(int stream) {
  return internal::str("stream ", stream % kStreamsOfDevice, " of device ",
                       stream / kStreamsOfDevice);
}

void join(StreamClock& clock, const StreamClock& other) {
  std::transform(clock.begin(), clock.end(), other.begin(), clock.begin(),
                 [](uint64_t mine, uint64_t its) { return std::max(mine, its); });
}

// Whether it is a dense tensor with memory of a device.
bool has_device_memory(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kSimulated && !tensor.is_sparse() &&
         tensor.storage().data_ptr().get() != nullptr;
}

const void* memory_of(const at::Tensor& tensor) { return tensor.storage().data_ptr().get(); }

// The stream whose use of the memory `clock` does not know to be done; -1: none. `also_reads`:
// whether reading it counts as using.
int unordered_use(const Memory& memory, const StreamClock& clock, bool also_reads) {
  if (memory.written_by >= 0 && clock[memory.written_by] < memory.written) return memory.written_by;
  for (size_t i = 0; also_reads && i < clock.size(); ++i) {
    if (clock[i] < memory.read[i]) return static_cast<int>(i);
  }
  return -1;
}

c10::Stream make_stream(c10::Device device, int id) {
  return c10::Stream(c10::Stream::UNSAFE, device, id);
}

}  // namespace

c10::DeviceIndex current_device() { return the_current_device; }

void set_current_device(c10::DeviceIndex index) { the_current_device = index; }

c10::Stream stream_of_thread(c10::Device device) {
  const auto index = device.has_index() ? device.index() : current_device();
  return make_stream(c10::Device(kSimulated, index), streams_of_thread[static_cast<size_t>(index)]);
}

c10::Stream set_stream_of_thread(c10::Stream stream) {
  int& of_device = streams_of_thread[static_cast<size_t>(stream.device_index())];
  return make_stream(stream.device(), std::exchange(of_device, static_cast<int>(stream.id())));
}

c10::Stream stream_from_pool(c10::Device device) {
  const std::lock_guard lock(state().mutex);
  const int id = state().next_of_pool;
  state().next_of_pool = id % (kStreamsOfDevice - 1) + 1;
  return make_stream(device, id);
}

StreamClock moment_of(c10::Stream stream) {
  const std::lock_guard lock(state().mutex);
  return state().streams[number_of(stream)];
}

void order_after(c10::Stream stream, const StreamClock& moment) {
  const std::lock_guard lock(state().mutex);
  join(state().streams[number_of(stream)], moment);
}

void host_waited_for(const StreamClock& moment) {
  const std::lock_guard lock(state().mutex);
  join(state().host, moment);
}

void order_together(c10::Stream one, c10::Stream other) {
  const std::lock_guard lock(state().mutex);
  StreamClock& first = state().streams[number_of(one)];
  join(first, state().streams[number_of(other)]);
  state().streams[number_of(other)] = first;
}

void make_memory(const void* device_memory, c10::Device device) {
  const int stream = number_of(stream_of_thread(device));
  const std::lock_guard lock(state().mutex);
  state().memories[device_memory] = Memory{.made_on = stream};
}

void keep_memory(const void* device_memory, c10::Stream stream) {
  if (device_memory == nullptr) return;
  const std::lock_guard lock(state().mutex);
  state().memories[device_memory].kept[number_of(stream)] = true;
}

void release_memory(const void* device_memory) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().memories.find(device_memory);
  if (found == state().memories.end()) return;
  Memory memory = found->second;
  state().memories.erase(found);
  if (memory.made_on < 0) return;
  for (size_t i = 0; i < memory.kept.size(); ++i) {
    if (!memory.kept[i]) continue;
    memory.read[i] = 0;
    if (memory.written_by == static_cast<int>(i)) memory.written_by = -1;
  }
  StreamClock own = state().streams[memory.made_on];
  join(own, state().host);
  if (const int other = unordered_use(memory, own, /*also_reads=*/true); other >= 0) {
    state().fault = "memory made on " + name_of(memory.made_on) + " was released while " +
                    name_of(other) + " may still use it: nothing keeps it until that is done";
  }
}

StreamOperation::StreamOperation(c10::Device device)
    : stream_(number_of(stream_of_thread(device))) {
  std::unique_lock lock(state().mutex);
  if (!state().fault.empty()) {
    const std::string fault = std::exchange(state().fault, {});
    lock.unlock();
    TORCH_CHECK(false, fault);
  }
  StreamClock& clock = state().streams[stream_];
  join(clock, state().host);
  time_ = ++clock[stream_];
}

void StreamOperation::reads(const at::Tensor& tensor) const {
  if (!has_device_memory(tensor)) return;
  int writer = -1;
  {
    const std::lock_guard lock(state().mutex);
    Memory& memory = state().memories[memory_of(tensor)];
    if (memory.made_on < 0) memory.made_on = stream_;
    writer = unordered_use(memory, state().streams[stream_], /*also_reads=*/false);
    if (writer < 0) memory.read[stream_] = time_;
  }
  TORCH_CHECK(writer < 0, name_of(stream_), " reads memory that ", name_of(writer),
              " writes, and no event orders the two");
}

void StreamOperation::writes(const at::Tensor& tensor) const {
  if (!has_device_memory(tensor)) return;
  int user = -1;
  {
    const std::lock_guard lock(state().mutex);
    Memory& memory = state().memories[memory_of(tensor)];
    if (memory.made_on < 0) memory.made_on = stream_;
    user = unordered_use(memory, state().streams[stream_], /*also_reads=*/true);
    if (user < 0) {
      memory.read = {};
      memory.written_by = stream_;
      memory.written = time_;
    }
  }
  TORCH_CHECK(user < 0, name_of(stream_), " writes memory that ", name_of(user),
              " uses, and no event orders the two");
}

}  // namespace cohort::testing
