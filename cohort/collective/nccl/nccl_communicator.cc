#include "cohort/collective/nccl/nccl_communicator.h"

#include <c10/core/Event.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "cohort/collective/nccl/nccl_ranks.h"
#include "cohort/core/error.h"
#include "cohort/core/threads/backoff.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::collective {
namespace {

using internal::str;
using nccl::check;
using nccl::library;
using nccl::NcclRanks;
using nccl::raw_stream;
using Clock = std::chrono::steady_clock;

// The pauses between two looks at whether a call has ended: events have no wait with an end.
constexpr std::chrono::microseconds kShortestPause{20};
constexpr std::chrono::microseconds kLongestPause{1000};
// How often a task that waits looks whether the others still live.
constexpr std::chrono::milliseconds kLookAtOthers{5};
// How long, after the deadline, the tasks may take to say that they are in the call.
constexpr std::chrono::seconds kGrace{1};

// A buffer for NCCL to add: complex numbers are two numbers each.
struct Elements {
  nccl::DataType type;
  size_t count;
};

Elements elements_to_add(const Buffer& buffer, int64_t count) {
  const auto one = static_cast<size_t>(count);
  switch (buffer.dtype) {
    case DType::Byte:
      return {nccl::kUint8, one};
    case DType::Char:
      return {nccl::kInt8, one};
    case DType::Int:
      return {nccl::kInt32, one};
    case DType::Long:
      return {nccl::kInt64, one};
    case DType::Half:
      return {nccl::kFloat16, one};
    case DType::BFloat16:
      return {nccl::kBfloat16, one};
    case DType::Float:
      return {nccl::kFloat32, one};
    case DType::Double:
      return {nccl::kFloat64, one};
    case DType::ComplexFloat:
      return {nccl::kFloat32, 2 * one};
    case DType::ComplexDouble:
      return {nccl::kFloat64, 2 * one};
    default:
      throw InvalidArgumentError(str("NCCL does not add ", internal::dtype_name(buffer.dtype)));
  }
}

// Waits for NCCL with an eye on the other tasks. Work outlives no communicator without it.
struct Watch {
  std::shared_ptr<Communicator> host;

  // Errors: those of is_done; DeadlineExceeded; what has ended the group.
  template <class Fn>
  void wait(const std::string& call, Deadline deadline, Fn is_done) const {
    internal::Backoff looks(kShortestPause, kLongestPause);
    auto look_at_others = Clock::now() + kLookAtOthers;
    while (!told_why(is_done)) {
      if (!looks.sleep(deadline)) throw_late(call);
      if (Clock::now() < look_at_others) continue;
      host->check_alive();
      look_at_others = Clock::now() + kLookAtOthers;
    }
  }
  // The result of `attempt`; where the ranks have been ended, why.
  template <class Fn>
  auto told_why(Fn attempt) const {
    try {
      return attempt();
    } catch (const AbortedError&) {
      host->check_alive();
      throw;
    }
  }

 private:
  // NCCL does not say for whom it waits; the host's barrier does.
  [[noreturn]] void throw_late(const std::string& call) const {
    try {
      host->barrier({.name = call, .timeout = kGrace});
    } catch (const UnavailableError&) {
      throw;
    } catch (const Error& error) {
      throw DeadlineExceededError(str(call, " did not end in time: ", error.what()));
    }
    throw DeadlineExceededError(
        str(call, " did not end in time, though every task waits for it: NCCL hangs; ",
            "NCCL_DEBUG=INFO makes it say more"));
  }
};

class NcclWork final : public Work {
 public:
  NcclWork(std::shared_ptr<const Watch> watch, std::shared_ptr<NcclRanks> ranks,
           std::span<const Buffer> buffers, std::string call)
      : watch_(std::move(watch)), ranks_(std::move(ranks)), call_(std::move(call)) {
    events_.reserve(buffers.size());
    for (const Buffer& buffer : buffers) {
      const c10::DeviceGuard guard(buffer.stream.device());
      events_.emplace_back(buffer.stream.device_type());
      events_.back().record(buffer.stream);
    }
  }

  void wait(Deadline deadline) override {
    try {
      watch_->wait(call_, deadline, [this] {
        const bool all_have_passed = std::all_of(
            events_.begin(), events_.end(), [](const c10::Event& event) { return event.query(); });
        return all_have_passed || (ranks_->are_ready(), false);
      });
    } catch (...) {
      watch_->host->abort(std::current_exception());
      ranks_->abort();
      throw;
    }
  }

  void order_after(c10::Stream stream) override {
    for (const c10::Event& event : events_) event.block(stream);
  }

 private:
  const std::shared_ptr<const Watch> watch_;
  const std::shared_ptr<NcclRanks> ranks_;
  const std::string call_;
  std::vector<c10::Event> events_;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<Communicator> host, const std::vector<c10::Device>& devices,
                   std::chrono::nanoseconds timeout)
      : host_(std::move(host)),
        watch_(std::make_shared<Watch>(Watch{host_})),
        devices_of_(static_cast<size_t>(host_->size())) {
    if (devices.empty()) throw InvalidArgumentError("NCCL needs a GPU, and this task has none");
    try {
      connect(devices, internal::bounded_wait(timeout));
    } catch (...) {
      host_->abort(std::current_exception());
      throw;
    }
  }

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  int64_t generation() const override { return host_->generation(); }
  std::string task_name(int rank) const override { return host_->task_name(rank); }
  Buffer buffer(int64_t bytes) override { return host_->buffer(bytes); }

  std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                   const CallOptions& options) override {
    if (!are_on_gpus(buffers)) return host_->all_reduce(buffers, options);
    return start("all_reduce", buffers, options, [&](const Buffer& mine, nccl::Comm one) {
      const Elements all = elements_to_add(mine, mine.count);
      check(library().all_reduce(mine.data, mine.data, all.count, all.type, nccl::kSum, one,
                                 raw_stream(mine.stream)),
            "all_reduce");
    });
  }

  std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers,
                                       std::span<const int64_t> counts,
                                       const CallOptions& options) override {
    if (!are_on_gpus(buffers)) return host_->reduce_scatter(buffers, counts, options);
    auto work = start("reduce_scatter", buffers, options, [&](const Buffer& mine, nccl::Comm one) {
      for_parts(buffers, mine, counts, [&](char* part, int64_t count, int root) {
        const Elements all = elements_to_add(mine, count);
        check(library().reduce(part, part, all.count, all.type, nccl::kSum, root, one,
                               raw_stream(mine.stream)),
              "reduce_scatter");
      });
    });
    // The sum of a part is on the first GPU of its task: where a task has more, they get it, too.
    return ranks_for(buffers) == leaders_ ? std::move(work) : all_gather(buffers, counts, options);
  }

  std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers, std::span<const int64_t> counts,
                                   const CallOptions& options) override {
    if (!are_on_gpus(buffers)) return host_->all_gather(buffers, counts, options);
    return start("all_gather", buffers, options, [&](const Buffer& mine, nccl::Comm one) {
      for_parts(buffers, mine, counts, [&](char* part, int64_t count, int root) {
        const auto bytes = static_cast<size_t>(count) * c10::elementSize(mine.dtype);
        check(library().broadcast(part, part, bytes, nccl::kUint8, root, one,
                                  raw_stream(mine.stream)),
              "all_gather");
      });
    });
  }

  std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                  const CallOptions& options) override {
    if (!are_on_gpus(buffers)) return host_->broadcast(buffers, root, options);
    return start("broadcast", buffers, options, [&](const Buffer& mine, nccl::Comm one) {
      check(
          library().broadcast(mine.data, mine.data, static_cast<size_t>(mine.bytes()), nccl::kUint8,
                              first_of(root, buffers), one, raw_stream(mine.stream)),
          "broadcast");
    });
  }

  void barrier(const CallOptions& options) override { host_->barrier(options); }

  // GPUs host no replicas of a tree.
  void use_division(std::shared_ptr<const SumDivision> division) override {
    host_->use_division(std::move(division));
  }
  void all_reduce_parts(const Buffer& parts, const CallOptions& options) override {
    host_->all_reduce_parts(parts, options);
  }

  void gather_bytes(std::span<const char> mine, GatheredBytes& all,
                    const CallOptions& options) override {
    host_->gather_bytes(mine, all, options);
  }

  bool works_on(c10::Device) const override { return true; }

  void check_alive() override { host_->check_alive(); }

  void abort(const std::exception_ptr& reason) noexcept override {
    host_->abort(reason);
    everybody_->abort();
    leaders_->abort();
  }

 private:
  static bool are_on_gpus(std::span<const Buffer> buffers) {
    return !buffers.empty() && !buffers[0].stream.device().is_cpu();
  }

  void connect(const std::vector<c10::Device>& devices, std::chrono::nanoseconds timeout) {
    library();
    const Deadline deadline = Clock::now() + timeout;
    devices_of_[static_cast<size_t>(rank())] = static_cast<int64_t>(devices.size());
    const std::vector<int64_t> one_each(devices_of_.size(), 1);
    collective::all_gather(*host_, {devices_of_.data(), size(), int64}, one_each,
                           {.name = "numbers of GPUs", .timeout = timeout});
    everybody_ = connect_ranks(sum_until(size()), sum_until(rank()), devices, deadline);
    leaders_ = everybody_;
    if (sum_until(size()) > size()) {
      leaders_ = connect_ranks(size(), rank(), {devices[0]}, deadline);
    }
  }

  std::shared_ptr<NcclRanks> connect_ranks(int ranks, int first,
                                           const std::vector<c10::Device>& devices,
                                           Deadline deadline) {
    nccl::UniqueId id = {};
    if (rank() == 0) check(library().get_unique_id(&id), "name a group");
    collective::broadcast(*host_, {&id, sizeof id, uint8}, 0,
                          {.name = "NCCL's name of the group", .timeout = deadline - Clock::now()});
    auto connected = std::make_shared<NcclRanks>(id, ranks, first, devices);
    watch_->wait("the connection of the GPUs", deadline, [&] { return connected->are_ready(); });
    return connected;
  }

  // The number of GPUs of all tasks before this one.
  int sum_until(int task) const {
    return static_cast<int>(
        std::accumulate(devices_of_.begin(), devices_of_.begin() + task, int64_t{0}));
  }

  // The ranks that a call with these buffers is made by.
  const std::shared_ptr<NcclRanks>& ranks_for(std::span<const Buffer> buffers) const {
    return buffers.size() == 1 ? leaders_ : everybody_;
  }
  // NCCL's rank of a task's first GPU in such a call.
  int first_of(int task, std::span<const Buffer> buffers) const {
    return ranks_for(buffers) == leaders_ ? task : sum_until(task);
  }

  // part(where, count, NCCL's rank that has or gets it) for each task's part.
  template <class Fn>
  void for_parts(std::span<const Buffer> buffers, const Buffer& mine,
                 std::span<const int64_t> counts, Fn part) const {
    int64_t begin = 0;
    for (int task = 0; task < size(); ++task) {
      const int64_t count = counts[static_cast<size_t>(task)];
      if (count > 0) part(mine.at(begin), count, first_of(task, buffers));
      begin += count;
    }
  }

  // call(buffer, NCCL's communicator of its device) for each buffer, all at once. Waits until the
  // calls are in the streams: NCCL connects at the first one.
  template <class Fn>
  std::unique_ptr<Work> start(const char* name, std::span<const Buffer> buffers,
                              const CallOptions& options, Fn call) {
    const std::shared_ptr<NcclRanks>& ranks = ranks_for(buffers);
    if (buffers.size() != ranks->size()) {
      throw InvalidArgumentError(str(name, " '", options.name, "' got ", buffers.size(),
                                     " buffers for ", ranks->size(), " GPUs"));
    }
    const Deadline deadline = Clock::now() + internal::bounded_wait(options.timeout);
    std::string text = str(name, " '", options.name, "'");
    try {
      watch_->told_why([&] { ranks->call(name, buffers, call); });
      watch_->wait(text, deadline, [&] { return ranks->are_ready(); });
      return std::make_unique<NcclWork>(watch_, ranks, buffers, std::move(text));
    } catch (const InvalidArgumentError&) {
      throw;  // of all tasks alike, before anything has moved
    } catch (...) {
      abort(std::current_exception());
      throw;
    }
  }

  const std::shared_ptr<Communicator> host_;
  const std::shared_ptr<const Watch> watch_;
  std::vector<int64_t> devices_of_;  // each task's number of GPUs
  std::shared_ptr<NcclRanks> everybody_;
  std::shared_ptr<NcclRanks>
      leaders_;  // each task's first GPU; `everybody_` where they have no more
};

}  // namespace

std::shared_ptr<Communicator> make_nccl_communicator(std::shared_ptr<Communicator> host,
                                                     std::vector<c10::Device> devices,
                                                     std::chrono::nanoseconds timeout) {
  return std::make_shared<NcclCommunicator>(std::move(host), devices, timeout);
}

}  // namespace cohort::collective
