#include "cohort/collective/forming/hierarchical_communicator.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/add_in_tree.h"
#include "cohort/collective/buffer_pool.h"
#include "cohort/collective/gathered_bytes.h"
#include "cohort/collective/local_buffers.h"
#include "cohort/collective/slices.h"
#include "cohort/collective/sole_communicator.h"
#include "cohort/collective/sum_division.h"
#include "cohort/core/error.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::collective {
namespace {

using internal::str;

class HierarchicalCommunicator final : public Communicator {
 public:
  HierarchicalCommunicator(const GroupMember& member, const HostRanks& hosts,
                           const MakeCommunicator& within, const MakeCommunicator& between)
      : member_(member), hosts_(hosts), host_of_(member.tasks.size()) {
    for (size_t host = 0; host < hosts_.size(); ++host) {
      for (const int rank : hosts_[host]) {
        host_of_[static_cast<size_t>(rank)] = static_cast<int>(host);
        order_.push_back(rank);
      }
    }
    is_in_order_ = std::is_sorted(order_.begin(), order_.end());
    host_ = host_of(member.rank);
    const std::vector<int>& mine = hosts_[static_cast<size_t>(host_)];
    within_ = mine.size() == 1 ? std::make_shared<SoleCommunicator>(member.generation)
                               : within(part_of(mine, str(member.group, "/host ", host_)));
    if (mine[0] != member.rank || hosts_.size() == 1) return;
    std::vector<int> leaders;
    for (const std::vector<int>& ranks : hosts_) leaders.push_back(ranks[0]);
    try {
      between_ = between(part_of(leaders, str(member.group, "/hosts")));
    } catch (...) {
      within_->abort(std::current_exception());
      throw;
    }
  }

  int rank() const override { return member_.rank; }
  int size() const override { return member_.size(); }
  int64_t generation() const override { return member_.generation; }
  std::string task_name(int rank) const override { return to_string(member_.task(rank)); }
  Buffer buffer(int64_t bytes) override { return within_->buffer(bytes); }

  std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                   const CallOptions& options) override {
    if (buffers[0].dtype == DType::Half) return add_in_float32<at::Half>(buffers, options);
    if (buffers[0].dtype == DType::BFloat16) return add_in_float32<at::BFloat16>(buffers, options);
    check_can_add(buffers[0].dtype);
    Round round(*this, options);
    round.within([&](const CallOptions& now) { wait(within_->all_reduce(buffers, now), now); });
    round.between(
        [&](const CallOptions& now) { wait(between_->all_reduce(buffers.first(1), now), now); });
    hand_out(round, buffers);
    return done_work();
  }

  void use_division(std::shared_ptr<const SumDivision> division) override {
    Communicator::use_division(division);
    if (!is_in_order_) return;
    std::vector<int> of_hosts, of_own;
    for (const std::vector<int>& ranks : hosts_) {
      of_hosts.push_back(0);
      for (const int rank : ranks) of_hosts.back() += division->num_replicas(rank);
    }
    for (const int rank : own_host()) of_own.push_back(division->num_replicas(rank));
    const auto between = std::make_shared<const SumDivision>(of_hosts, host_);
    host_parts_ = HostParts(*division, *between, own_host());
    within_->use_division(std::make_shared<const SumDivision>(of_own, place_on_host(rank())));
    if (between_) between_->use_division(between);
  }

  // The tasks of a host add up the largest nodes that the host has whole, and leaders pass those
  // on.
  void all_reduce_parts(const Buffer& parts, const CallOptions& options) override {
    check_can_add(parts.dtype);
    if (!is_in_order_) return Communicator::all_reduce_parts(parts, options);
    Round round(*this, options);
    Buffer of_host = parts;
    round.within([&](const CallOptions& now) {
      if (own_host().size() == 1) return;  // its parts are those of the task
      if (host_parts_.size() == 1) return within_->all_reduce_parts(parts, now);
      if (!gathering_) gathering_ = std::make_unique<Gathering>(*within_);
      const auto own = static_cast<size_t>(parts.bytes()) * division().own_parts().size();
      within_->gather_bytes({parts.at(0), own}, gathering_->of_host, now);
      if (between_) of_host = host_parts_.add_up(gathering_->of_host, parts);
    });
    round.between([&](const CallOptions& now) {
      between_->all_reduce_parts(of_host, now);
      if (of_host.data != parts.data && parts.count > 0) {
        std::memcpy(parts.data, of_host.data, static_cast<size_t>(parts.bytes()));
      }
    });
    if (hosts_.size() > 1) hand_out(round, {&parts, 1});
  }

  std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers, std::span<const int64_t>,
                                       const CallOptions& options) override {
    return all_reduce(buffers, options);  // the parts of others are theirs to use
  }

  std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers, std::span<const int64_t> counts,
                                   const CallOptions& options) override {
    if (is_in_order_) {
      gather(buffers, counts, options);
    } else {
      gather_out_of_order(buffers, counts, options);
    }
    return done_work();
  }

  std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                  const CallOptions& options) override {
    Round round(*this, options);
    const int root_host = host_of(root);
    if (host_ == root_host) {
      round.within([&](const CallOptions& now) {
        wait(within_->broadcast(buffers, place_on_host(root), now), now);
      });
    }
    round.between([&](const CallOptions& now) {
      wait(between_->broadcast(buffers.first(1), root_host, now), now);
    });
    if (host_ != root_host) hand_out(round, buffers);
    return done_work();
  }

  void barrier(const CallOptions& options) override {
    Round round(*this, options);
    round.within([&](const CallOptions& now) { within_->barrier(now); });
    round.between([&](const CallOptions& now) { between_->barrier(now); });
    round.after([&](const CallOptions& now) { within_->barrier(now); });
  }

  // Each host sends one message with the bytes of its tasks. Other hosts hand it out as it arrived.
  void gather_bytes(std::span<const char> mine, GatheredBytes& all,
                    const CallOptions& options) override {
    if (!gathering_) gathering_ = std::make_unique<Gathering>(*within_);
    Gathering& kept = *gathering_;
    all.parts().resize(order_.size());
    Round round(*this, options);
    round.within([&](const CallOptions& now) { within_->gather_bytes(mine, kept.of_host, now); });
    const auto tasks = static_cast<size_t>(within_->size());
    if (hosts_.size() == 1) {
      for (size_t i = 0; i < tasks; ++i) {
        all.parts()[static_cast<size_t>(order_[i])] = kept.of_host.of(static_cast<int>(i));
      }
      return;
    }
    std::span<const char> whole;
    round.between([&](const CallOptions& now) {
      between_->gather_bytes(kept.write_message(tasks), kept.of_hosts, now);
      whole = kept.join_messages(hosts_.size());
    });
    round.after(
        [&](const CallOptions& now) { within_->gather_bytes(whole, kept.handed_out, now); });
    read_messages(kept.handed_out.of(0), all);
  }

  void check_alive() override {
    within_->check_alive();
    if (between_) between_->check_alive();
  }

  void abort(const std::exception_ptr& reason) noexcept override {
    within_->abort(reason);
    if (between_) between_->abort(reason);
  }

 private:
  // The largest nodes that this host has whole, whose sums its leader adds up by itself where there
  // are several.
  class HostParts {
   public:
    HostParts() = default;
    HostParts(const SumDivision& of_tasks, const SumDivision& of_hosts,
              const std::vector<int>& ranks) {
      std::vector<ReplicaRange> of_node;
      size_t node = 0;
      for (const int rank : ranks) {
        for (const ReplicaRange& part : of_tasks.parts(rank)) {
          of_node.push_back(part);
          if (part.last != of_hosts.own_parts()[node].last) continue;
          additions_.push_back(of_tasks.tree().additions_of(of_node));
          of_node.clear();
          ++node;
        }
      }
    }

    size_t size() const { return additions_.size(); }

    // gathered: the parts of the host's tasks. The sums lie one after another, until the next call.
    Buffer add_up(const GatheredBytes& gathered, const Buffer& part) {
      sources_.clear();
      const auto bytes = static_cast<size_t>(part.bytes());
      for (const std::span<const char> of_task : gathered.all()) {
        for (size_t place = 0; place < of_task.size(); place += bytes) {
          sources_.push_back(of_task.data() + place);
        }
      }
      sums_.resize(std::max(sums_.size(), bytes * size()));
      const Buffer sums{sums_.data(), part.count, part.dtype};
      size_t first = 0;
      for (size_t node = 0; node < size() && part.count > 0; ++node) {
        void* const sum = sums.at(static_cast<int64_t>(node) * part.count);
        const size_t count = additions_[node].size();
        add_in_tree({&sum, 1}, std::span(sources_).subspan(first, count), additions_[node],
                    part.count, part.dtype);
        first += count;
      }
      return sums;
    }

   private:
    std::vector<Additions> additions_;  // of each node
    // Kept for their memory.
    std::vector<const void*> sources_;
    std::vector<char> sums_;
  };

  // The steps of a call, with the time that is left for each. An error in one group of tasks is
  // told to the other group.
  class Round {
   public:
    Round(HierarchicalCommunicator& owner, const CallOptions& options)
        : owner_(owner), options_(options) {
      options_.timeout = internal::bounded_wait(options_.timeout);
      options_.plan = nullptr;  // which is of this communicator's calls
      deadline_ = std::chrono::steady_clock::now() + options_.timeout;
    }

    template <class Fn>
    void within(Fn call) {
      try {
        call(left({}));
      } catch (...) {
        if (owner_.between_) owner_.between_->abort(std::current_exception());
        throw;
      }
    }
    template <class Fn>
    void between(Fn call) {
      if (!owner_.between_) return;
      try {
        call(left({}));
      } catch (...) {
        owner_.within_->abort(std::current_exception());
        throw;
      }
    }
    // What follows the leaders' exchange: a leader whose time is over comes first and says for whom
    // it waited.
    template <class Fn>
    void after(Fn call) {
      within([&](const CallOptions&) {
        call(left(owner_.between_ ? std::chrono::nanoseconds(0) : kGrace));
      });
    }

   private:
    static constexpr std::chrono::nanoseconds kGrace = std::chrono::seconds(1);

    CallOptions left(std::chrono::nanoseconds grace) const {
      CallOptions now = options_;
      const std::chrono::nanoseconds left = deadline_ - std::chrono::steady_clock::now() + grace;
      now.timeout = std::max(left, std::chrono::nanoseconds(1));
      return now;
    }

    HierarchicalCommunicator& owner_;
    CallOptions options_;
    Deadline deadline_;
  };

  // The memory that a gather_bytes keeps until the next one. A host's message has the number of
  // bytes of each of its tasks, as int64, then the bytes of each; every part begins with a cache
  // line.
  struct Gathering {
    explicit Gathering(Communicator& within) : pool(within) {}

    static constexpr size_t kCacheLine = 64;
    static size_t padded(size_t bytes) {
      return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
    }

    std::span<const char> write_message(size_t tasks) {
      std::vector<char>& message = messages[turn++ % 2];  // hosts may still read the other one
      size_t bytes = padded(tasks * sizeof(int64_t));
      for (size_t i = 0; i < tasks; ++i) bytes += padded(of_host.of(static_cast<int>(i)).size());
      message.resize(bytes);
      size_t place = padded(tasks * sizeof(int64_t));
      for (size_t i = 0; i < tasks; ++i) {
        const std::span<const char> part = of_host.of(static_cast<int>(i));
        const auto count = static_cast<int64_t>(part.size());
        std::memcpy(message.data() + i * sizeof(int64_t), &count, sizeof(int64_t));
        if (!part.empty()) std::memcpy(message.data() + place, part.data(), part.size());
        place += padded(part.size());
      }
      return message;
    }

    // In memory that the tasks of this host see.
    std::span<const char> join_messages(size_t hosts) {
      size_t bytes = 0;
      for (size_t i = 0; i < hosts; ++i) bytes += of_hosts.of(static_cast<int>(i)).size();
      const auto needed = static_cast<int64_t>(bytes);
      if (whole.bytes() < needed) whole = pool.take(needed + needed / 2);
      char* next = whole.data();
      for (size_t i = 0; i < hosts; ++i) {
        const std::span<const char> message = of_hosts.of(static_cast<int>(i));
        std::memcpy(next, message.data(), message.size());
        next += message.size();
      }
      return {whole.data(), bytes};
    }

    BufferPool pool;  // of the tasks of this host
    GatheredBytes of_host{pool};
    GatheredBytes of_hosts{pool};
    GatheredBytes handed_out{pool};
    std::vector<char> messages[2];
    size_t turn = 0;
    BufferPool::Piece whole;
  };

  // Errors: DataLoss (the messages are not as long as they say).
  void read_messages(std::span<const char> messages, GatheredBytes& all) const {
    for (const std::vector<int>& ranks : hosts_) {
      const std::span<const char> counts = take(messages, ranks.size() * sizeof(int64_t));
      for (size_t i = 0; i < ranks.size(); ++i) {
        uint64_t count = 0;
        std::memcpy(&count, counts.data() + i * sizeof(count), sizeof(count));
        all.parts()[static_cast<size_t>(ranks[i])] = take(messages, count);
      }
    }
  }
  static std::span<const char> take(std::span<const char>& messages, uint64_t bytes) {
    if (bytes > messages.size() || Gathering::padded(bytes) > messages.size()) {
      throw DataLossError(str("bytes of other hosts: of ", messages.size(), " that are left ",
                              bytes, " were to be read"));
    }
    const std::span<const char> part = messages.first(bytes);
    messages = messages.subspan(Gathering::padded(bytes));
    return part;
  }

  static void wait(std::unique_ptr<Work> work, const CallOptions& options) {
    work->wait(std::chrono::steady_clock::now() + options.timeout);
  }

  int host_of(int rank) const { return host_of_[static_cast<size_t>(rank)]; }
  const std::vector<int>& own_host() const { return hosts_[static_cast<size_t>(host_)]; }
  int place_on_host(int rank) const {
    const std::vector<int>& ranks = hosts_[static_cast<size_t>(host_of(rank))];
    return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  }

  GroupMember part_of(const std::vector<int>& ranks, const std::string& group) const {
    GroupMember part = member_;
    part.group = group;
    part.tasks.clear();
    for (const int rank : ranks) {
      if (rank == member_.rank) part.rank = part.size();
      part.tasks.push_back(member_.task(rank));
    }
    return part;
  }

  // Short floats are rounded once, at the end, and not once for each level.
  template <class T>
  std::unique_ptr<Work> add_in_float32(std::span<const Buffer> buffers,
                                       const CallOptions& options) {
    const int64_t count = buffers[0].count;
    wide_.assign(static_cast<size_t>(count), -0.0f);  // to which x adds up to x, also -0
    for (const Buffer& buffer : buffers) {
      const T* const values = static_cast<const T*>(buffer.data);
      for (int64_t i = 0; i < count; ++i) {
        wide_[static_cast<size_t>(i)] += static_cast<float>(values[i]);
      }
    }
    const Buffer wide{wide_.data(), count, float32, buffers[0].stream};
    std::unique_ptr<Work> work = all_reduce({&wide, 1}, options);
    for (const Buffer& buffer : buffers) {
      T* const values = static_cast<T*>(buffer.data);
      for (int64_t i = 0; i < count; ++i) {
        values[i] = static_cast<T>(wide_[static_cast<size_t>(i)]);
      }
    }
    return work;
  }

  void hand_out(Round& round, std::span<const Buffer> buffers) {
    round.after([&](const CallOptions& now) { wait(within_->broadcast(buffers, 0, now), now); });
  }

  // `counts` and the parts of `buffers` are in the order of hosts.
  void gather(std::span<const Buffer> buffers, std::span<const int64_t> counts,
              const CallOptions& options) {
    host_counts_.assign(hosts_.size(), 0);
    part_counts_.clear();
    for (size_t i = 0; i < order_.size(); ++i) {
      host_counts_[static_cast<size_t>(host_of(order_[i]))] += counts[i];
      if (host_of(order_[i]) == host_) part_counts_.push_back(counts[i]);
    }
    const Buffer& all = buffers[0];
    const Buffer ours{all.at(offset_of(host_counts_, host_)),
                      host_counts_[static_cast<size_t>(host_)], all.dtype, all.stream};
    Round round(*this, options);
    round.within([&](const CallOptions& now) {
      wait(within_->all_gather({&ours, 1}, part_counts_, now), now);
    });
    round.between([&](const CallOptions& now) {
      wait(between_->all_gather({&all, 1}, host_counts_, now), now);
    });
    hand_out(round, buffers);
  }

  // In memory in which the parts lie in the order of hosts.
  void gather_out_of_order(std::span<const Buffer> buffers, std::span<const int64_t> counts,
                           const CallOptions& options) {
    const Buffer& all = buffers[0];
    sorted_.resize(static_cast<size_t>(all.bytes()));
    const Buffer sorted{sorted_.data(), all.count, all.dtype, all.stream};
    sorted_counts_.clear();
    for (const int rank : order_) sorted_counts_.push_back(counts[static_cast<size_t>(rank)]);
    const auto for_parts = [&](auto fn) {
      int64_t begin = 0;
      for (size_t i = 0; i < order_.size(); ++i) {
        char* const there = sorted.at(begin);
        begin += sorted_counts_[i];
        fn(order_[i], all.at(offset_of(counts, order_[i])), there,
           static_cast<size_t>(sorted.at(begin) - there));
      }
    };
    for_parts([&](int rank, const char* part, char* place, size_t bytes) {
      if (rank == member_.rank) std::memcpy(place, part, bytes);
    });
    gather({&sorted, 1}, sorted_counts_, options);
    for_parts(
        [](int, char* part, const char* place, size_t bytes) { std::memcpy(part, place, bytes); });
    copy_to_others(buffers, 0, all.count);
  }

  const GroupMember member_;
  const HostRanks hosts_;
  std::vector<int> host_of_;  // by rank
  std::vector<int> order_;    // the ranks, host by host
  bool is_in_order_ = false;
  int host_ = 0;  // this task's
  std::shared_ptr<Communicator> within_;
  std::shared_ptr<Communicator> between_;  // a leader's
  // Counts of the current call: of each host, of each task of this host, of each task host by host.
  std::vector<int64_t> host_counts_;
  std::vector<int64_t> part_counts_;
  std::vector<int64_t> sorted_counts_;
  std::vector<char> sorted_;
  HostParts host_parts_;
  std::vector<float> wide_;               // short floats of the current call
  std::unique_ptr<Gathering> gathering_;  // made by the first gather_bytes
};

}  // namespace

std::shared_ptr<Communicator> make_hierarchical_communicator(const GroupMember& member,
                                                             const HostRanks& hosts,
                                                             const MakeCommunicator& within,
                                                             const MakeCommunicator& between) {
  return std::make_shared<HierarchicalCommunicator>(member, hosts, within, between);
}

}  // namespace cohort::collective
