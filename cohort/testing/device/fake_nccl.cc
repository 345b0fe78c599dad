// A library with NCCL's calls, as far as Cohort uses them, for simulated GPUs of one process or of
// several on this machine.
//
// The ranks of a group meet in a folder of the system's folder for temporary files, which the
// group's id names: each writes what it brings to a call into a file, and reads those of the
// others. Sums are added in the order of ranks. Each communicator has a thread that makes its
// calls; a call is "in progress" until it is done, for kernels of simulated GPUs run when they are
// called. A rank that is killed is noticed by nobody, as with NCCL between the GPUs of a machine.
//
// What goes wrong is told by environment variables, which each call reads:
//   COHORT_FAKE_NCCL_VERSION=30100          what ncclGetVersion says
//   COHORT_FAKE_NCCL_ERROR=ncclAllReduce=3  this function's calls fail with this result
//   COHORT_FAKE_NCCL_LATE=ncclAllReduce=50  they begin so many milliseconds late; -1: never
//   COHORT_FAKE_NCCL_RANK=1                 of this rank alone
#include "cohort/testing/device/fake_nccl.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/collective/nccl/nccl_library.h"
#include "cohort/testing/device/device_memory.h"

namespace {

using namespace cohort::collective::nccl;
using Bytes = std::vector<char>;

constexpr Result kInvalidArgument = Result{4};
constexpr std::chrono::microseconds kLook{50};
constexpr size_t kItemBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};  // by DataType

std::string digits(int64_t number) {
  char text[24];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

int number(const std::string& text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void write_file(const std::string& name, const char* data, size_t bytes) {
  std::FILE* const file = std::fopen(name.c_str(), "wb");
  if (file == nullptr) return;  // the others have ended, and the folder with them
  std::fwrite(data, 1, bytes, file);
  std::fclose(file);
}

Bytes read_file(const std::string& name) {
  Bytes bytes(std::filesystem::file_size(name));
  std::FILE* const file = std::fopen(name.c_str(), "rb");
  if (file == nullptr) return {};
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  return bytes;
}

// The value of "NAME=VALUE" in a variable, where it is of this function and rank.
bool is_told(const char* variable, const std::string& function, int rank, int& value) {
  const char* const rank_text = std::getenv("COHORT_FAKE_NCCL_RANK");
  if (rank_text != nullptr && rank >= 0 && number(rank_text) != rank) return false;
  const char* const text = std::getenv(variable);
  if (text == nullptr || std::string(text).rfind(function + "=", 0) != 0) return false;
  value = number(text + function.size() + 1);
  return true;
}

Result told_result(const std::string& function, int rank) {
  int result = 0;
  return is_told("COHORT_FAKE_NCCL_ERROR", function, rank, result) ? Result{result} : kSuccess;
}

void* host_address(const void* device) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(device) &
                                 ~(std::uintptr_t{1} << 55));
}

template <class T, class Sum = T>
void add(const std::vector<Bytes>& all, char* out, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    Sum sum{};
    for (size_t rank = 0; rank < all.size(); ++rank) {
      T value;
      std::memcpy(&value, all[rank].data() + i * sizeof(T), sizeof(T));
      sum = rank == 0 ? static_cast<Sum>(value) : static_cast<Sum>(sum + static_cast<Sum>(value));
    }
    const T rounded = static_cast<T>(sum);
    std::memcpy(out + i * sizeof(T), &rounded, sizeof(T));
  }
}

void add(const std::vector<Bytes>& all, char* out, size_t count, DataType type) {
  switch (type) {
    case kInt8:
    case kUint8:
      return add<uint8_t>(all, out, count);
    case kInt32:
      return add<uint32_t>(all, out, count);
    case kInt64:
      return add<uint64_t>(all, out, count);
    case kFloat16:
      return add<c10::Half, float>(all, out, count);
    case kBfloat16:
      return add<c10::BFloat16, float>(all, out, count);
    case kFloat32:
      return add<float>(all, out, count);
    case kFloat64:
      return add<double>(all, out, count);
  }
}

struct Call {
  std::string function;
  const void* send;
  void* receive;
  size_t bytes;
  size_t count;
  DataType type;
  int root;  // -1: all
};

}  // namespace

namespace cohort::collective::nccl {

// A rank.
class NcclComm {
 public:
  NcclComm(std::string folder, int ranks, int rank)
      : folder_(std::move(folder)), ranks_(ranks), rank_(rank), device_(current_device()) {
    thread_ = std::thread([this] { work(); });
  }
  // Ends what is under way.
  ~NcclComm() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
    leave();
  }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  void connect() {
    later([this] { return meet(); });
  }
  void make(const Call& call) {
    later([this, call] { return make_now(call); });
  }
  Result state() {
    const std::lock_guard lock(mutex_);
    if (result_ != kSuccess) return result_;
    return left_ == 0 ? kSuccess : kInProgress;
  }

 private:
  static std::string current_device() {
    const c10::impl::VirtualGuardImpl guard(cohort::testing::kSimulated);
    return digits(::getpid()) + " " + digits(guard.getDevice().index());
  }

  // The last one takes the folder along: others may still read this rank's files.
  void leave() const {
    write_file(folder_ + "/left." + digits(rank_), "", 0);
    for (int rank = 0; rank < ranks_; ++rank) {
      if (!std::filesystem::exists(folder_ + "/left." + digits(rank))) return;
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void later(std::function<Result()> call) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(call));
      ++left_;
    }
    changed_.notify_all();
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ended_ || !queue_.empty(); });
      if (ended_) return;
      const std::function<Result()> call = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      const Result result = call();
      lock.lock();
      if (ended_) return;
      if (result_ == kSuccess) result_ = result;
      --left_;
    }
  }

  // Errors: false (ended).
  bool pause(std::chrono::microseconds time) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, time, [&] { return ended_; });
  }
  bool wait_until_due(const std::string& function) {
    int milliseconds = 0;
    if (!is_told("COHORT_FAKE_NCCL_LATE", function, rank_, milliseconds)) return true;
    while (milliseconds < 0) {
      if (!pause(std::chrono::milliseconds(10))) return false;
    }
    return pause(std::chrono::milliseconds(milliseconds));
  }

  std::string file(uint64_t call, int rank) const {
    return folder_ + "/" + digits(static_cast<int64_t>(call)) + "." + digits(rank);
  }
  void write(const char* data, size_t bytes) {
    own_files_.push_back(file(calls_, rank_));
    const std::string unfinished = own_files_.back() + ".part";
    write_file(unfinished, data, bytes);
    std::error_code ignored;
    std::filesystem::rename(unfinished, own_files_.back(), ignored);
    // All have written the second of three, which this rank has read: they have read the first.
    if (own_files_.size() > 2) {
      std::filesystem::remove(own_files_.front(), ignored);
      own_files_.pop_front();
    }
  }
  // Errors: false (ended).
  bool read(int rank, Bytes& into) {
    const std::string name = file(calls_, rank);
    while (!std::filesystem::exists(name)) {
      if (!pause(kLook)) return false;
    }
    into = read_file(name);
    return true;
  }

  Result meet() {
    if (!wait_until_due("ncclCommInitRankConfig")) return kSuccess;
    write(device_.data(), device_.size());
    Bytes other;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (!read(rank, other)) return kSuccess;
      if (rank != rank_ && std::string(other.begin(), other.end()) == device_) return kInvalidUsage;
    }
    ++calls_;
    return kSuccess;
  }

  Result make_now(const Call& call) {
    if (!wait_until_due(call.function)) return kSuccess;
    const bool brings = call.function != "ncclBroadcast" || rank_ == call.root;
    const auto* const mine = static_cast<const char*>(host_address(call.send));
    write(mine, brings ? call.bytes : 0);
    std::vector<Bytes> all(static_cast<size_t>(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      if (!read(rank, all[static_cast<size_t>(rank)])) return kSuccess;
    }
    ++calls_;
    auto* const out = static_cast<char*>(host_address(call.receive));
    if (call.function == "ncclBroadcast") {
      const Bytes& root = all[static_cast<size_t>(call.root)];
      if (root.size() != call.bytes) return kInvalidArgument;
      if (!root.empty()) std::memcpy(out, root.data(), root.size());
      return kSuccess;
    }
    for (const Bytes& one : all) {
      if (one.size() != call.bytes) return kInvalidArgument;
    }
    if (call.root < 0 || call.root == rank_) add(all, out, call.count, call.type);
    return kSuccess;
  }

  const std::string folder_;
  const int ranks_;
  const int rank_;
  const std::string device_;
  uint64_t calls_ = 0;                 // of the thread
  std::deque<std::string> own_files_;  // of the thread, until it has ended
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<Result()>> queue_;  // guarded by mutex_
  int left_ = 0;                               // guarded by mutex_
  Result result_ = kSuccess;                   // guarded by mutex_
  bool ended_ = false;                         // guarded by mutex_
  std::thread thread_;
};

}  // namespace cohort::collective::nccl

namespace {

thread_local int groups = 0;
thread_local std::vector<std::function<void()>> calls_of_group;

// Now, or when the thread's group of calls ends: those of all its ranks begin together.
Result begin(std::function<void()> call) {
  if (groups == 0) {
    call();
    return kInProgress;
  }
  calls_of_group.push_back(std::move(call));
  return kSuccess;
}

Result begin(Comm comm, const Call& call) {
  if (const Result told = told_result(call.function, comm->rank()); told != kSuccess) return told;
  if (call.root >= comm->ranks()) return kInvalidArgument;
  return begin([comm, call] { comm->make(call); });
}

size_t bytes_of(size_t count, DataType type) { return count * kItemBytes[type]; }

}  // namespace

#define COHORT_FAKE extern "C" __attribute__((visibility("default")))

COHORT_FAKE Result ncclGetVersion(int* version) {
  const char* const told = std::getenv("COHORT_FAKE_NCCL_VERSION");
  *version = told != nullptr ? number(told) : 22703;
  return kSuccess;
}

COHORT_FAKE const char* ncclGetErrorString(Result result) {
  static constexpr std::array<const char*, 8> kTexts = {
      "no error",         "unhandled cuda error", "unhandled system error", "internal error",
      "invalid argument", "invalid usage",        "remote process exited",  "in progress"};
  const auto index = static_cast<size_t>(result);
  return index < kTexts.size() ? kTexts[index] : "unknown result code";
}

COHORT_FAKE Result ncclGetUniqueId(UniqueId* id) {
  std::string folder = std::filesystem::temp_directory_path() / "fake-nccl-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr || folder.size() >= sizeof id->bytes) return Result{2};
  *id = {};
  std::memcpy(id->bytes, folder.data(), folder.size());
  return kSuccess;
}

COHORT_FAKE Result ncclCommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank,
                                          Config* config) {
  if (config->magic != Config().magic || config->blocking != 0) return kInvalidArgument;
  if (rank < 0 || rank >= ranks) return kInvalidArgument;
  if (const Result told = told_result("ncclCommInitRankConfig", rank); told != kSuccess)
    return told;
  *comm = new NcclComm(id.bytes, ranks, rank);
  return begin([one = *comm] { one->connect(); });
}

COHORT_FAKE Result ncclCommGetAsyncError(Comm comm, Result* state) {
  *state = told_result("ncclCommGetAsyncError", comm->rank());
  if (*state == kSuccess) *state = comm->state();
  return kSuccess;
}

COHORT_FAKE Result ncclCommAbort(Comm comm) {
  delete comm;
  return kSuccess;
}

COHORT_FAKE Result ncclGroupStart() {
  ++groups;
  return kSuccess;
}

COHORT_FAKE Result ncclGroupEnd() {
  if (--groups > 0) return kSuccess;
  for (const auto& call : std::exchange(calls_of_group, {})) call();
  return kInProgress;
}

COHORT_FAKE Result ncclAllReduce(const void* send, void* receive, size_t count, DataType type,
                                 Operation, Comm comm, void*) {
  return begin(comm, {"ncclAllReduce", send, receive, bytes_of(count, type), count, type, -1});
}

COHORT_FAKE Result ncclReduce(const void* send, void* receive, size_t count, DataType type,
                              Operation, int root, Comm comm, void*) {
  return begin(comm, {"ncclReduce", send, receive, bytes_of(count, type), count, type, root});
}

COHORT_FAKE Result ncclBroadcast(const void* send, void* receive, size_t count, DataType type,
                                 int root, Comm comm, void*) {
  return begin(comm, {"ncclBroadcast", send, receive, bytes_of(count, type), count, type, root});
}
