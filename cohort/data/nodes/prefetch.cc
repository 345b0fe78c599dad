#include "cohort/data/nodes/prefetch.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "cohort/core/caught_error.h"
#include "cohort/core/program/start_thread.h"
#include "cohort/core/program/task.h"
#include "cohort/core/threads/thread_pool.h"
#include "cohort/data/dataset.h"
#include "cohort/data/functions/parallel_calls.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/pass_interrupted.h"

namespace cohort::internal {
namespace {

int64_t bytes_of(const Structure& element) {
  int64_t bytes = 0;
  element.for_each([&](const Leaf& leaf) {
    if (leaf.is_tensor()) {
      bytes += leaf.tensor().numel() * static_cast<int64_t>(leaf.tensor().dtype().itemsize());
      return;
    }
    const StringTensor& strings = leaf.strings();
    for (int64_t i = 0; i < strings.numel(); ++i) bytes += std::ssize(strings[i]);
  });
  return bytes;
}

// More elements are read ahead than there must be, up to so many times as many, if together they
// take fewer bytes.
constexpr int64_t kSmallBytes = int64_t{1} << 20;
constexpr size_t kMostTimes = 4;

// A thread reads ahead into a bounded queue, and with each element takes down the state of the
// input before it: where the reader stands is where the oldest element in the queue came from. The
// thread starts with the first element asked for, so restoring and rewinding come before it. With
// AUTOTUNE the queue gets longer as long as the reader finds it empty after it was full, and a
// longer one does not hold too many bytes. With small_further or AUTOTUNE small elements fill it
// beyond its size, and then the thread sleeps until half of them are taken: to wake it takes the
// reader longer than to read most.
class PrefetchIterator final : public DataIterator {
 public:
  PrefetchIterator(std::unique_ptr<DataIterator> input, int64_t buffer_size, bool small_further)
      : input_(std::move(input)),
        tuned_(buffer_size == data::AUTOTUNE),
        small_further_(small_further || tuned_),
        buffer_size_(tuned_ ? kFirstSize : static_cast<size_t>(buffer_size)) {}
  ~PrefetchIterator() override { stop(); }

  bool next(Structure& out) override {
    if (!thread_.joinable()) start();
    std::unique_lock lock(mutex_);
    if (gone_ && queue_.empty()) {
      lock.unlock();
      thread_.join();
      start();
      lock.lock();
    }
    if (tuned_ && queue_.empty() && std::exchange(was_full_, false)) {
      buffer_size_ = std::min(2 * buffer_size_, kMaxTunedSize);
      emptied_.notify_one();
    }
    // No deadline: how long an element takes is the user's business, and the thread always ends by
    // delivering something.
    filled_.wait(lock, [this] { return !queue_.empty(); });
    if (queue_.front().end) {
      if (queue_.front().error) std::rethrow_exception(queue_.front().error);
      return false;
    }
    Item item = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= item.bytes;
    const bool refill = queue_.size() <= refill_at_;
    lock.unlock();
    if (refill) emptied_.notify_one();
    last_origin_ = std::move(item.origin);
    if (item.error) std::rethrow_exception(item.error);
    out = std::move(item.element);
    return true;
  }
  std::shared_ptr<const std::string> last_origin() const override { return last_origin_; }
  void rewind(uint64_t epoch) override {
    stop();
    input_->rewind(epoch);
  }
  // The state is the input's own, so that it fits a pipeline without prefetch too.
  IteratorState save() override {
    if (!thread_.joinable()) return input_->save();
    const std::lock_guard lock(mutex_);
    if (!queue_.empty()) return *queue_.front().before;
    return gone_ ? input_->save() : *before_next_;
  }
  void restore(const IteratorState& state) override {
    stop();
    input_->restore(state);
  }

 private:
  static constexpr size_t kFirstSize = 2;
  static constexpr size_t kMaxTunedSize = 64;
  static constexpr int64_t kMaxTunedBytes = int64_t{512} << 20;
  using StatePtr = std::shared_ptr<const IteratorState>;
  struct Item {
    StatePtr before;
    Structure element;
    std::shared_ptr<const std::string> origin;
    int64_t bytes = 0;  // of the element, where they decide how far the thread reads
    std::exception_ptr error;
    bool end = false;  // nothing follows: also after an error that interrupts the pass
  };

  void start() {
    before_next_ = std::make_shared<const IteratorState>(input_->save());
    stopping_ = gone_ = false;
    thread_ = start_thread("to read ahead with", [this, &task = Task::current()] {
      const ScopedTask as_caller(task);
      run();
    });
  }
  // Afterwards the input is this thread's again, wherever it stands.
  void stop() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    emptied_.notify_one();
    thread_.join();
    queue_.clear();
    queued_bytes_ = 0;
  }
  void run() {
    set_thread_name("prefetch");
    const c10::NoGradGuard no_grad;
    while (wait_for_room()) {
      Item item;
      item.before = before_next_;  // only this thread changes it
      try {
        read(item);
      } catch (...) {  // a function ends this thread, which counts as an error of the element
        item.error = thread_ended_error("a function of the input of prefetch");
        add(std::move(item), nullptr);
        throw;
      }
      StatePtr after = item.before;
      if (!item.end) {
        try {
          after = std::make_shared<const IteratorState>(input_->save());
        } catch (...) {
          item.error = std::current_exception();
        }
      }
      const bool end = item.end;
      add(std::move(item), std::move(after));
      if (end) return;
    }
  }
  // `after`: the input's state then; null if the thread ends, and with it what it knows of the
  // input.
  void add(Item item, StatePtr after) {
    {
      const std::lock_guard lock(mutex_);
      gone_ = after == nullptr;
      before_next_ = std::move(after);
      queued_bytes_ += item.bytes;
      queue_.push_back(std::move(item));
      was_full_ =
          was_full_ || (queue_.size() >= buffer_size_ && queued_bytes_ <= kMaxTunedBytes / 2);
    }
    filled_.notify_one();
  }
  void read(Item& item) {
    try {
      item.end = !input_->next(item.element);
      item.origin = input_->last_origin();
      if (small_further_) item.bytes = bytes_of(item.element);
    } catch (const PassInterrupted&) {
      item.error = std::current_exception();
      item.end = true;
    } catch (...) {
      item.error = caught_error();
    }
  }
  bool wait_for_room() {
    std::unique_lock lock(mutex_);
    if (is_full()) {
      refill_at_ = std::max(buffer_size_ - 1, small_further_ ? queue_.size() / 2 : 0);
      emptied_.wait(lock, [this] { return stopping_ || queue_.size() <= refill_at_; });
    }
    return !stopping_;
  }
  bool is_full() const {
    if (queue_.size() < buffer_size_) return false;
    return !small_further_ || queue_.size() >= kMostTimes * buffer_size_ ||
           queued_bytes_ >= kSmallBytes;
  }

  std::unique_ptr<DataIterator> input_;  // the thread's while it runs
  const bool tuned_;
  const bool small_further_;
  std::shared_ptr<const std::string> last_origin_;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable filled_;   // the queue is no longer empty
  std::condition_variable emptied_;  // there is room in the queue, or it is time to stop
  std::deque<Item> queue_;
  int64_t queued_bytes_ = 0;
  StatePtr before_next_;  // the input's state before the element that the thread reads next
  bool stopping_ = false;
  bool gone_ = false;  // a function has ended the thread
  size_t buffer_size_;
  size_t refill_at_ = 0;  // the thread waits until no more elements than that are left
  // Since the reader last found the queue empty, with no more bytes than half of what it may hold.
  bool was_full_ = false;
};

class PrefetchNode final : public UnaryNode {
 public:
  PrefetchNode(DataNodePtr input, int64_t buffer_size, bool small_further = false)
      : UnaryNode("prefetch", std::move(input)),
        buffer_size_(buffer_size),
        small_further_(small_further) {
    if (buffer_size < 1 && buffer_size != data::AUTOTUNE) {
      throw InvalidArgumentError(str("prefetch: buffer_size is ", buffer_size,
                                     "; it must be at least 0, or data::AUTOTUNE"));
    }
  }

  Attributes attributes() const override {
    Attributes all{{"buffer_size", autotune_text(buffer_size_)}};
    if (small_further_) all.emplace_back("small_bytes", str(kSmallBytes));
    return all;
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<PrefetchNode>(std::move(inputs[0]), buffer_size_, small_further_);
  }
  int64_t cardinality() const override { return input().cardinality(); }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    if (context.probing) return input().make_iterator(context);
    return std::make_unique<PrefetchIterator>(input().make_iterator(context), buffer_size_,
                                              small_further_);
  }
  bool is_transparent() const override { return true; }
  bool passes_file_sharding() const override { return true; }
  bool passes_element_sharding() const override { return true; }
  int64_t batch_size() const override { return input().batch_size(); }

 private:
  int64_t buffer_size_;
  bool small_further_;
};

}  // namespace

DataNodePtr make_read_ahead(const DataNodePtr& input, int64_t buffer_size) {
  return std::make_shared<PrefetchNode>(input, buffer_size, /*small_further=*/true);
}

}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::prefetch(int64_t buffer_size) const {
  if (buffer_size == 0) return *this;
  return Dataset(std::make_shared<internal::PrefetchNode>(node_, buffer_size), options_);
}

}  // namespace cohort::data
