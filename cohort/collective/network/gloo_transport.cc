#include "cohort/collective/network/gloo_transport.h"

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/forming_wait.h"
#include "cohort/collective/network/gloo_loop.h"
#include "cohort/collective/network/gloo_mesh.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"

namespace cohort::collective {
namespace {

using internal::str;
using std::chrono::milliseconds;
using UnboundBuffer = gloo::transport::UnboundBuffer;

constexpr int kAttempts = 3;
constexpr milliseconds kMostAttemptTime{5000};
// How long a broken connection waits for news of the reason.
constexpr milliseconds kNewsTime{1000};
constexpr milliseconds kLeaveTime{200};

// More than any wait of ours takes: see gloo_loop.h.
constexpr milliseconds kNoLimitOfGloos = std::chrono::hours(24) * 365;

milliseconds left_until(Transport::Deadline deadline) {
  const auto left = deadline - std::chrono::steady_clock::now();
  // Gloo counts in milliseconds, and takes 0 for no limit.
  return std::clamp(std::chrono::ceil<milliseconds>(left), milliseconds(1),
                    milliseconds(std::chrono::hours(24)));
}

class GlooTransport final : public Transport {
 public:
  GlooTransport(const GroupMember& member, const std::string& host,
                std::unique_ptr<Transport> control)
      : member_(member), control_(std::move(control)), peers_(member.tasks.size()) {
    for (int attempt = 0; !context_; ++attempt) {
      const std::string failure = connect(host, attempt);
      if (failure.empty()) break;
      context_ = nullptr;
      internal::log_warning("Gloo's connections of group '", member.group, "' failed at attempt ",
                            attempt + 1, ": ", failure);
      if (attempt + 1 < kAttempts) continue;
      const UnavailableError error(str("Gloo did not connect the tasks of group '", member.group,
                                       "' in ", kAttempts, " attempts; the last: ", failure));
      control_->fail(std::make_exception_ptr(error));
      throw error;
    }
    GlooTransport::on_end(nullptr);
  }

  ~GlooTransport() override {
    try {
      take_leave();
    } catch (const std::exception&) {  // the group has ended
    }
    control_->on_end(nullptr);
    close();
  }

  char* memory(size_t bytes) override { return control_->memory(bytes); }

  void send(int to, const void* data, size_t bytes) override {
    Peer& receiver = peer(to);
    // Gloo sends no empty message.
    char* const from = bytes == 0 ? &nothing_ : const_cast<char*>(static_cast<const char*>(data));
    auto buffer = context_->createUnboundBuffer(from, std::max<size_t>(bytes, 1));
    starts_.push_back({buffer.get(), to, receiver.num_sent++, true});
    receiver.sending.push_back(std::move(buffer));
    last_send_ = Clock::now();
  }

  void expect(int from, void* into, size_t bytes) override {
    Peer& sender = peer(from);
    Expected expected{.into = into};
    if (bytes == 0) {
      expected.into = &nothing_received_;
    } else if (into == nullptr) {
      expected.into = take_block();
      expected.is_block = true;
    }
    expected.buffer = context_->createUnboundBuffer(expected.into, std::max<size_t>(bytes, 1));
    starts_.push_back({expected.buffer.get(), from, sender.num_expected++, false});
    sender.expected.push_back(std::move(expected));
  }

  const void* receive(int from, Deadline deadline) override {
    start_all();
    Peer& sender = peer(from);
    Expected& expected = sender.expected.front();
    UnboundBuffer& buffer = *expected.buffer;
    const auto wait = [&] { return buffer.waitRecv(kNoLimitOfGloos); };
    if (!guarded(from, deadline, buffer, wait)) return nullptr;
    void* const data = expected.into;
    if (expected.is_block) used_.push_back(static_cast<char*>(data));
    sender.expected.pop_front();
    return data;
  }

  // Gloo cannot say without ending the group.
  bool is_late(int) override { return false; }

  int finish(Deadline deadline) override {
    start_all();
    for (int rank = 0; rank < member_.size(); ++rank) {
      auto& sending = peer(rank).sending;
      for (; !sending.empty(); sending.pop_front()) {
        UnboundBuffer& buffer = *sending.front();
        const auto wait = [&] { return buffer.waitSend(kNoLimitOfGloos); };
        if (!guarded(rank, deadline, buffer, wait)) return rank;
      }
    }
    free_.insert(free_.end(), used_.begin(), used_.end());
    used_.clear();
    return -1;
  }

  // Closes Gloo's connections, also where the group has ended already: whoever ends it on another
  // thread wakes first, and closes then. Who returns from here may free what Gloo would have
  // written to.
  void fail(const std::exception_ptr& error) noexcept override {
    control_->fail(error);
    close();
  }
  void check() override { control_->check(); }
  void on_end(std::function<void()> ended) override {
    control_->on_end([this, ended = std::move(ended)] {
      {
        const std::lock_guard lock(ended_mutex_);
        has_ended_ = true;
        wake();  // Gloo wakes the others where a connection is closed, and not who waits here
      }
      ended_.notify_all();
      close();
      if (ended) ended();
    });
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Expected {
    std::unique_ptr<UnboundBuffer> buffer = nullptr;
    void* into = nullptr;
    bool is_block = false;  // memory of this transport
  };
  struct Peer {
    uint64_t num_sent = 0;
    uint64_t num_expected = 0;
    std::deque<std::unique_ptr<UnboundBuffer>> sending;
    std::deque<Expected> expected;
  };

  // What could not be started.
  struct Broken {
    int rank = -1;  // none
    std::string how = "";
  };

  // During its lifetime, the deadline and the end of the group, or of a connection, wake the thread
  // that waits for `buffer`.
  // Errors: what has ended it, Unavailable (a connection broke).
  class Waiting {
   public:
    Waiting(GlooTransport& owner, UnboundBuffer& buffer, Deadline deadline) : owner_(owner) {
      {
        const std::lock_guard lock(owner_.ended_mutex_);
        if (!owner_.has_ended_ && owner_.broken_.rank < 0) {
          owner_.waits_for_ = &buffer;
          owner_.waits_until_ = deadline;
          owner_.be_called_by(deadline);
          return;
        }
      }
      owner_.check();
      owner_.check_not_broken();
    }
    ~Waiting() {
      const std::lock_guard lock(owner_.ended_mutex_);
      owner_.waits_for_ = nullptr;
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    GlooTransport& owner_;
  };

  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }

  template <class Fn>
  void for_others(Fn fn) {
    for (int rank = 0; rank < member_.size(); ++rank) {
      if (rank != member_.rank) fn(rank);
    }
  }

  char* take_block() {
    if (free_.empty()) {
      blocks_.push_back(std::make_unique_for_overwrite<char[]>(kMaxMessageBytes));
      return blocks_.back().get();
    }
    char* const block = free_.back();
    free_.pop_back();
    return block;
  }

  void start_all() {
    if (!starts_.empty()) loop_->start(starts_);
  }

  // For a locked ended_mutex_.
  void wake() {
    if (waits_for_ == nullptr) return;
    waits_for_->abortWaitRecv();
    waits_for_->abortWaitSend();
  }

  void on_broken(int rank, const std::string& how) {
    const std::lock_guard lock(ended_mutex_);
    if (broken_.rank < 0) broken_ = {rank, how};
    wake();
  }

  void check_not_broken() {
    Broken broken;
    {
      const std::lock_guard lock(ended_mutex_);
      broken = broken_;
    }
    if (broken.rank >= 0) throw_broken(broken.rank, broken.how);
  }

  // For a locked ended_mutex_. The timer stays where it comes earlier: most waits end long before
  // it, and the next one's deadline is later.
  void be_called_by(Deadline deadline) {
    if (called_at_ <= deadline) return;
    called_at_ = deadline;
    loop_->call_at(deadline);
  }

  // On Gloo's thread.
  Deadline on_due() {
    const std::lock_guard lock(ended_mutex_);
    called_at_ = GlooLoop::kNever;
    if (waits_for_ == nullptr) return called_at_;
    if (Clock::now() >= waits_until_) {
      wake();
    } else {
      called_at_ = waits_until_;
    }
    return called_at_;
  }

  // Waits; false at the deadline.
  template <class Fn>
  bool guarded(int rank, Deadline deadline, UnboundBuffer& buffer, Fn wait) {
    const Waiting waiting(*this, buffer, deadline);
    try {
      if (wait()) return true;
      control_->check();  // nothing else than these two and the deadline ends a wait so
      check_not_broken();
      return false;
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw_broken(rank, error.what());
    }
  }

  [[noreturn]] void throw_broken(int rank, const std::string& how) {
    {
      std::unique_lock lock(ended_mutex_);
      ended_.wait_for(lock, kNewsTime, [this] { return has_ended_; });
    }
    control_->check();
    throw UnavailableError(
        str(member_.task(rank), " was lost: its connection over Gloo broke: ", how));
  }

  // Closing a connection drops what the other end has not read yet. So a task that has just sent
  // something stays until the others leave, too.
  void take_leave() {
    control_->check();
    const Deadline until = last_send_ + kLeaveTime;
    for_others([&](int rank) {
      control_->expect(rank, nullptr, 0);
      control_->send(rank, nullptr, 0);
    });
    for_others([&](int rank) { control_->receive(rank, until); });
  }

  void close() noexcept {
    if (loop_) loop_->stop();
    try {
      if (context_) context_->closeConnections();
    } catch (const std::exception& error) {
      internal::log_warning("closing Gloo's connections: ", error.what());
    }
  }

  // ---- Forming.

  // Returns why this task or another is not connected; empty where all are.
  std::string connect(const std::string& host, int attempt) {
    std::string failure;
    std::vector<uint64_t> nonces(peers_.size());
    exchange_nonces(nonces);
    const auto left = left_until(member_.deadline) / (kAttempts + 1 - attempt);
    loop_ = nullptr;
    starts_.clear();
    broken_ = {};
    try {
      context_ = connect_gloo_mesh(member_, host, attempt, std::min(left, kMostAttemptTime));
      called_at_ = GlooLoop::kNever;
      loop_ = std::make_unique<GlooLoop>(
          *context_, [this](int rank, const std::string& how) { on_broken(rank, how); },
          [this] { return on_due(); });
      check_nonces(nonces);
    } catch (const std::exception& error) {
      failure = error.what();
      close();
    }
    return agree(failure);
  }

  // Tells each task a number that Gloo's connection to it must show, and learns theirs.
  void exchange_nonces(std::vector<uint64_t>& theirs) {
    std::random_device device;
    mine_ = device();
    mine_ = mine_ << 32 | device();
    for_others([&](int rank) {
      control_->expect(rank, &theirs[static_cast<size_t>(rank)], sizeof(uint64_t));
      control_->send(rank, &mine_, sizeof mine_);
    });
    for_others([&](int rank) { receive_control(rank); });
    finish_control();
  }

  void check_nonces(const std::vector<uint64_t>& expected) {
    for (Peer& peer : peers_) peer = {};
    shown_.assign(expected.size(), 0);
    for_others([&](int rank) {
      expect(rank, &shown_[static_cast<size_t>(rank)], sizeof(uint64_t));
      send(rank, &mine_, sizeof mine_);
    });
    const Deadline deadline = Clock::now() + context_->getTimeout();
    bool in_time = true;
    for_others([&](int rank) { in_time = in_time && receive(rank, deadline) != nullptr; });
    in_time = in_time && finish(deadline) < 0;
    for_others([&](int rank) {
      const auto at = static_cast<size_t>(rank);
      if (in_time && shown_[at] == expected[at]) return;
      throw UnavailableError(
          str("the other end of the connection to ", member_.task(rank), " is not that task"));
    });
  }

  // One that failed fails all: they try again together.
  std::string agree(std::string failure) {
    char failed = failure.empty() ? 0 : 1;
    std::vector<char> all(peers_.size(), 0);
    for_others([&](int rank) {
      control_->expect(rank, &all[static_cast<size_t>(rank)], 1);
      control_->send(rank, &failed, 1);
    });
    for_others([&](int rank) {
      receive_control(rank);
      if (all[static_cast<size_t>(rank)] != 0 && failure.empty()) {
        failure = str(member_.task(rank), " could not connect");
      }
    });
    finish_control();
    if (!failure.empty()) close();
    return failure;
  }

  void receive_control(int rank) {
    FormingWait wait(member_);
    while (!control_->receive(rank, wait.until())) {
      if (!wait.is_over()) continue;
      throw DeadlineExceededError(str(member_.task(rank), " did not come in time to form group '",
                                      member_.group, "' over Gloo"));
    }
  }
  void finish_control() { control_->finish(member_.deadline); }

  const GroupMember member_;
  const std::unique_ptr<Transport> control_;
  std::shared_ptr<gloo::Context> context_;
  std::vector<Peer> peers_;
  uint64_t mine_ = 0;  // the nonce of this attempt, and what the others showed
  std::vector<uint64_t> shown_;
  Deadline last_send_;
  std::mutex ended_mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;                 // guarded by ended_mutex_, as is
  UnboundBuffer* waits_for_ = nullptr;     // what this task waits for,
  Deadline waits_until_;                   // until then, and
  Deadline called_at_ = GlooLoop::kNever;  // when Gloo's thread will look at it
  Broken broken_;
  char nothing_ = 0;
  char nothing_received_ = 0;
  // Memory for messages whose place the caller leaves to the transport.
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::vector<char*> free_;
  std::vector<char*> used_;  // until finish
  std::vector<GlooLoop::Start> starts_;
  std::unique_ptr<GlooLoop> loop_;  // ends first: it uses what is above
};

}  // namespace

bool gloo_is_built() { return true; }

std::unique_ptr<Transport> make_gloo_transport(const GroupMember& member, const std::string& host,
                                               std::unique_ptr<Transport> control) {
  return std::make_unique<GlooTransport>(member, host, std::move(control));
}

}  // namespace cohort::collective
