#include "cohort/collective/nccl/nccl_communicator.h"

#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/threads/backoff.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::collective {
namespace {

using internal::str;

// The pause between two looks at whether a call has ended.
constexpr std::chrono::microseconds kLook{20};

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  throw UnavailableError(str("CUDA cannot ", what, ": ", cudaGetErrorString(result)));
}

// A call that goes on is no error: communicators do not block.
void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw UnavailableError(str("NCCL cannot ", what, ": ", ncclGetErrorString(result)));
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::Byte:
      return ncclUint8;
    case DType::Char:
      return ncclInt8;
    case DType::Int:
      return ncclInt32;
    case DType::Long:
      return ncclInt64;
    case DType::Half:
      return ncclFloat16;
    case DType::BFloat16:
      return ncclBfloat16;
    case DType::Float:
      return ncclFloat32;
    case DType::Double:
      return ncclFloat64;
    default:
      throw InvalidArgumentError(str("NCCL does not add ", internal::dtype_name(dtype)));
  }
}

cudaStream_t stream_of(const c10::Stream& stream) { return c10::cuda::CUDAStream(stream).stream(); }

// A point in a stream of a device.
class Event {
 public:
  explicit Event(const c10::Stream& stream) {
    const c10::DeviceGuard guard(stream.device());
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "make an event");
    if (const cudaError_t result = cudaEventRecord(event_, stream_of(stream));
        result != cudaSuccess) {
      cudaEventDestroy(event_);
      check(result, "record an event");
    }
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  bool has_passed() const {
    const cudaError_t result = cudaEventQuery(event_);
    if (result == cudaErrorNotReady) return false;
    check(result, "end a collective call");
    return true;
  }
  void hold_back(const c10::Stream& stream) const {
    check(cudaStreamWaitEvent(stream_of(stream), event_, 0), "order a stream after a call");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Calls of NCCL that begin together, when end() is called. If an exception comes before it, the
// calls made until then begin, too.
class CallGroup {
 public:
  explicit CallGroup(const char* what) : what_(what) { check(ncclGroupStart(), what); }
  ~CallGroup() {
    if (!has_ended_) ncclGroupEnd();
  }
  CallGroup(const CallGroup&) = delete;
  CallGroup& operator=(const CallGroup&) = delete;

  void end() {
    has_ended_ = true;
    check(ncclGroupEnd(), what_);
  }

 private:
  const char* const what_;
  bool has_ended_ = false;
};

// NCCL's communicators of this process, one for each of its devices. They end together.
// Thread safety: any thread.
class Communicators {
 public:
  Communicators(const ncclUniqueId& id, int ranks, int first, const std::vector<int>& devices)
      : all_(devices.size(), nullptr) {
    try {
      connect(id, ranks, first, devices);
    } catch (...) {
      abort();
      throw;
    }
  }
  ~Communicators() { abort(); }
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  // call(the communicators, by device), while none of them ends. Does not block.
  // Errors: Aborted (they have ended), those of the call.
  template <class Fn>
  void use(Fn call) const {
    const std::lock_guard lock(mutex_);
    check_not_ended();
    call(all_);
  }

  // Whether nothing is left to be started. Errors: Aborted (they have ended), Unavailable.
  bool are_ready() const {
    const std::lock_guard lock(mutex_);
    check_not_ended();
    for (ncclComm_t one : all_) {
      ncclResult_t state = ncclSuccess;
      check(ncclCommGetAsyncError(one, &state), "say how it is");
      check(state, "exchange values");
      if (state == ncclInProgress) return false;
    }
    return true;
  }

  void abort() noexcept {
    const std::lock_guard lock(mutex_);
    for (ncclComm_t one : all_) {
      if (one != nullptr) ncclCommAbort(one);
    }
    all_.clear();
  }

 private:
  void connect(const ncclUniqueId& id, int ranks, int first, const std::vector<int>& devices) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    CallGroup together("connect");
    for (size_t i = 0; i < devices.size(); ++i) {
      const c10::DeviceGuard guard(
          c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(devices[i])));
      const int rank = first + static_cast<int>(i);
      check(ncclCommInitRankConfig(&all_[i], ranks, id, rank, &config), "connect");
    }
    together.end();
  }
  void check_not_ended() const {
    if (all_.empty()) throw AbortedError("NCCL's group has ended; form it again");
  }

  mutable std::mutex mutex_;
  std::vector<ncclComm_t> all_;  // guarded by mutex_; none once they have ended
};

class NcclWork final : public Work {
 public:
  NcclWork(std::shared_ptr<Communicators> communicators, std::span<const Buffer> buffers,
           std::string call)
      : communicators_(std::move(communicators)), call_(std::move(call)) {
    for (const Buffer& buffer : buffers) {
      events_.push_back(std::make_unique<Event>(buffer.stream));
    }
  }

  void wait(Deadline deadline) override {
    internal::Backoff looks(kLook);
    for (const auto& event : events_) {
      while (!event->has_passed()) {
        communicators_->are_ready();
        if (!looks.sleep(deadline)) {
          communicators_->abort();
          throw DeadlineExceededError(call_ +
                                      " did not end in time: NCCL does not say for whom it waits");
        }
      }
    }
  }

  void order_after(c10::Stream stream) override {
    for (const auto& event : events_) event->hold_back(stream);
  }

 private:
  const std::shared_ptr<Communicators> communicators_;
  const std::string call_;
  std::vector<std::unique_ptr<Event>> events_;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<Communicator> host, std::vector<int> devices,
                   std::chrono::nanoseconds timeout)
      : host_(std::move(host)),
        devices_of_(static_cast<size_t>(host_->size())),
        one_each_(devices_of_.size(), 1) {
    if (devices.empty()) throw InvalidArgumentError("NCCL needs a GPU, and this task has none");
    devices_of_[static_cast<size_t>(rank())] = static_cast<int64_t>(devices.size());
    const auto tasks = static_cast<int64_t>(devices_of_.size());
    collective::all_gather(*host_, {devices_of_.data(), tasks, int64}, one_each_,
                           {.name = "numbers of GPUs", .timeout = timeout});
    ncclUniqueId id = {};
    if (rank() == 0) check(ncclGetUniqueId(&id), "name a group");
    collective::broadcast(*host_, {&id, sizeof id, uint8}, 0,
                          {.name = "NCCL's name of the group", .timeout = timeout});
    communicators_ =
        std::make_shared<Communicators>(id, first_of(size()), first_of(rank()), devices);
    wait_until_ready(std::chrono::steady_clock::now() + timeout);
  }

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  int64_t generation() const override { return host_->generation(); }
  std::string task_name(int rank) const override { return host_->task_name(rank); }
  Buffer buffer(int64_t bytes) override { return host_->buffer(bytes); }

  std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                   const CallOptions& options) override {
    if (!are_on_gpus(buffers)) return host_->all_reduce(buffers, options);
    return start("all_reduce", buffers, options, [&](const Buffer& mine, ncclComm_t one) {
      check(ncclAllReduce(mine.data, mine.data, count_of(mine), type_of(mine.dtype), ncclSum, one,
                          stream_of(mine.stream)),
            "all_reduce");
    });
  }

  std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers,
                                       std::span<const int64_t> counts,
                                       const CallOptions& options) override {
    if (!are_on_gpus(buffers)) return host_->reduce_scatter(buffers, counts, options);
    auto work = start("reduce_scatter", buffers, options, [&](const Buffer& mine, ncclComm_t one) {
      for_parts(mine, counts, [&](void* part, int64_t count, int root) {
        check(ncclReduce(part, part, static_cast<size_t>(count), type_of(mine.dtype), ncclSum, root,
                         one, stream_of(mine.stream)),
              "reduce_scatter");
      });
    });
    // The sum of a part is on the first GPU of its task: where a task has more, they get it, too.
    return first_of(size()) == size() ? std::move(work) : all_gather(buffers, counts, options);
  }

  std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers, std::span<const int64_t> counts,
                                   const CallOptions& options) override {
    if (!are_on_gpus(buffers)) return host_->all_gather(buffers, counts, options);
    return start("all_gather", buffers, options, [&](const Buffer& mine, ncclComm_t one) {
      for_parts(mine, counts, [&](void* part, int64_t count, int root) {
        check(ncclBroadcast(part, part, static_cast<size_t>(count), type_of(mine.dtype), root, one,
                            stream_of(mine.stream)),
              "all_gather");
      });
    });
  }

  std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                  const CallOptions& options) override {
    if (!are_on_gpus(buffers)) return host_->broadcast(buffers, root, options);
    return start("broadcast", buffers, options, [&](const Buffer& mine, ncclComm_t one) {
      check(ncclBroadcast(mine.data, mine.data, count_of(mine), type_of(mine.dtype), first_of(root),
                          one, stream_of(mine.stream)),
            "broadcast");
    });
  }

  void barrier(const CallOptions& options) override { host_->barrier(options); }

  void abort(const std::exception_ptr& reason) noexcept override {
    host_->abort(reason);
    communicators_->abort();
  }

 private:
  static bool are_on_gpus(std::span<const Buffer> buffers) {
    return !buffers.empty() && buffers[0].stream.device().is_cuda();
  }
  static size_t count_of(const Buffer& buffer) { return static_cast<size_t>(buffer.count); }

  // NCCL's rank of a task's first GPU; of size(): the number of all ranks.
  int first_of(int task) const {
    return static_cast<int>(
        std::accumulate(devices_of_.begin(), devices_of_.begin() + task, int64_t{0}));
  }

  // part(where, count, NCCL's rank that has or gets it) for each task's part.
  template <class Fn>
  void for_parts(const Buffer& mine, std::span<const int64_t> counts, Fn part) {
    int64_t begin = 0;
    for (int task = 0; task < size(); ++task) {
      const int64_t count = counts[static_cast<size_t>(task)];
      if (count > 0) part(mine.at(begin), count, first_of(task));
      begin += count;
    }
  }

  // call(buffer, NCCL's communicator of its device) for each buffer, all at once.
  template <class Fn>
  std::unique_ptr<Work> start(const char* name, std::span<const Buffer> buffers,
                              const CallOptions& options, Fn call) {
    if (static_cast<int64_t>(buffers.size()) != devices_of_[static_cast<size_t>(rank())]) {
      throw InvalidArgumentError(str(name, " '", options.name, "' got ", buffers.size(),
                                     " buffers for ", devices_of_[static_cast<size_t>(rank())],
                                     " GPUs"));
    }
    try {
      communicators_->use([&](const std::vector<ncclComm_t>& all) {
        CallGroup together(name);
        for (size_t i = 0; i < buffers.size(); ++i) {
          const c10::DeviceGuard guard(buffers[i].stream.device());
          call(buffers[i], all[i]);
        }
        together.end();
      });
      wait_until_ready(std::chrono::steady_clock::now() + internal::bounded_wait(options.timeout));
      return std::make_unique<NcclWork>(communicators_, buffers,
                                        str(name, " '", options.name, "'"));
    } catch (...) {
      abort(std::current_exception());
      throw;
    }
  }

  // Waits until the calls are in the streams: NCCL connects at the first call.
  void wait_until_ready(Deadline deadline) {
    internal::Backoff looks(kLook);
    while (!communicators_->are_ready()) {
      if (looks.sleep(deadline)) continue;
      communicators_->abort();
      throw DeadlineExceededError("NCCL did not connect the GPUs of the group in time");
    }
  }

  const std::shared_ptr<Communicator> host_;
  std::vector<int64_t> devices_of_;  // each task's number of GPUs
  const std::vector<int64_t> one_each_;
  std::shared_ptr<Communicators> communicators_;
};

}  // namespace

std::shared_ptr<Communicator> make_nccl_communicator(std::shared_ptr<Communicator> host,
                                                     std::vector<int> devices,
                                                     std::chrono::nanoseconds timeout) {
  return std::make_shared<NcclCommunicator>(std::move(host), std::move(devices), timeout);
}

}  // namespace cohort::collective
