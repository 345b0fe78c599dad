#include "cohort/cluster/rpc/session.h"

#include <utility>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/program/task.h"
#include "cohort/core/text.h"

namespace cohort::internal::rpc {

class Session::Kept : public Call {
 public:
  explicit Kept(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  ~Kept() override { session_->dropped(); }

  const Caller& caller() const override { return session_->caller_; }
  const Message& request() const override { return session_->request_; }
  bool on_own_thread() const override { return session_->peer_.own_thread; }
  std::chrono::steady_clock::time_point deadline() const override { return session_->deadline_; }

  void reply(Message message) override { session_->answer(std::move(message)); }
  void fail(std::exception_ptr error) override { session_->answer(error); }
  void on_cancel(std::function<void()> cancelled) override {
    {
      const std::lock_guard lock(session_->mutex_);
      if (!session_->cancelled_) {
        if (session_->answer_) session_->on_cancel_ = std::move(cancelled);
        return;
      }
    }
    cancelled();
  }

 private:
  const std::shared_ptr<Session> session_;
};

Session::Session(CallRules& rules, std::shared_ptr<Load> load, Peer peer,
                 std::chrono::steady_clock::time_point deadline, AnswerFn answer)
    : rules_(rules),
      load_(std::move(load)),
      server_(rules.name()),
      peer_(std::move(peer)),
      deadline_(deadline),
      answer_(std::move(answer)) {
  load_->calls.fetch_add(1, std::memory_order_relaxed);
}

Session::~Session() {
  load_->bulk_bytes.fetch_sub(reserved_bytes_, std::memory_order_relaxed);
  load_->header_bytes.fetch_sub(reserved_header_bytes_, std::memory_order_relaxed);
  load_->calls.fetch_sub(1, std::memory_order_relaxed);
}

void Session::begin(std::string_view method) noexcept {
  try {
    entry_ = rules_.find(method);
    method_ = entry_->name;
    if (deadline_ == std::chrono::steady_clock::time_point::max()) {
      throw InvalidArgumentError(str("a call of ", method_, " from ", peer_.address,
                                     " has no deadline; every call needs one"));
    }
    reader_.emplace(str("request of ", method_, " from ", peer_.address), header_limits(),
                    [this](const Header& header) {
                      admit(header);
                      return MessageReader::Limits{.control_bytes = entry_->spec.max_control_bytes,
                                                   .bulk_bytes = entry_->spec.max_bulk_bytes};
                    });
  } catch (...) {
    answer(std::current_exception());
  }
}

void Session::refuse(std::string_view method, const std::exception_ptr& error) noexcept {
  method_ = method;
  answer(error);
}

MessageReader::HeaderLimits Session::header_limits() {
  // The most bytes of a caller's claim: the name of its job, and five numbers. No task's job has a
  // longer name.
  constexpr size_t kClaimBytes = 1024;
  constexpr size_t kMostVarintBytes = 10;
  const MethodSpec& spec = entry_->spec;
  const size_t num_bulks = spec.max_bulk_bytes > 0 ? kMaxBulks : 0;
  return {.bytes = spec.max_control_bytes + kClaimBytes + num_bulks * kMostVarintBytes,
          .num_bulks = num_bulks,
          .reserve = [this](size_t bytes) {
            rules_.reserve_header(bytes);
            reserved_header_bytes_ = bytes;
          }};
}

void Session::admit(const Header& header) {
  caller_ = rules_.admit(*entry_, peer_, header.claim);
  size_t bytes = 0;
  for (const uint64_t size : header.bulk_sizes) {
    if (size > entry_->spec.max_bulk_bytes - bytes) return;  // which the reader refuses
    bytes += size;
  }
  rules_.reserve(bytes);
  reserved_bytes_ = bytes;
}

void Session::append(std::string_view bytes) noexcept {
  if (!reader_) return;  // refused before
  try {
    reader_->append(bytes);
  } catch (...) {
    reader_.reset();
    answer(std::current_exception());
  }
}

void Session::filled(size_t bytes) noexcept {
  try {
    reader_->filled(bytes);
  } catch (...) {  // no memory for the next tensor
    reader_.reset();
    answer(std::current_exception());
  }
}

void Session::end_of_request() noexcept {
  if (!reader_) return;
  try {
    reader_->expect_complete();
    request_ = reader_->take();
    reader_.reset();
  } catch (...) {
    reader_.reset();
    answer(std::current_exception());
    return;
  }
  try {
    // Once more: bulk may take long to come, and the cluster has gone on meanwhile.
    rules_.check_fence(*entry_, caller_);
  } catch (...) {
    return answer(std::current_exception());
  }
  dispatch();
}

void Session::end_late_request() noexcept {
  if (!reader_) return;
  reader_.reset();
  answer(std::make_exception_ptr(
      DeadlineExceededError(str("the request of ", method_, " from ", peer_.address,
                                " has not come whole in time; the rest of it is not read"))));
}

void Session::dispatch() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return;
    in_handle_ = true;
  }
  std::exception_ptr error;
  try {
    const ScopedTask as_server(Task::named(rules_.self().job, rules_.self().index));
    entry_->service->handle(entry_->index, std::make_unique<Kept>(shared_from_this()));
  } catch (...) {
    error = std::current_exception();
  }
  bool dropped_in_handle = false;
  {
    const std::lock_guard lock(mutex_);
    in_handle_ = false;
    dropped_in_handle = std::exchange(dropped_, false);
  }
  if (!dropped_in_handle) return;
  if (error) {
    answer(error);
  } else {
    dropped();
  }
}

void Session::dropped() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!answer_) return;
    if (in_handle_) {
      dropped_ = true;
      return;
    }
  }
  answer(make_error(Code::kInternal, str(method_, " gave no answer. This is a defect of ", server_),
                    server_, {.rpc = method_}));
}

void Session::answer(Message message) noexcept {
  try {
    send(MessageWriter({}, std::move(message)));
  } catch (...) {
    answer(std::current_exception());
  }
}

void Session::answer(const std::exception_ptr& error) noexcept {
  try {
    ErrorRecord record = record_error(error);
    ErrorDetail detail = detail_of(error);
    // The task that raised it is this one, unless it came from another.
    if (record.task.empty()) record.task = server_;
    if (detail.rpc.empty()) detail.rpc = method_;
    Header header;
    header.error = encode_error(make_error(record.code, record.message, record.task, detail));
    send(MessageWriter(std::move(header), {}));
  } catch (...) {
    send({});  // no memory for an error: an answer without bytes, which the caller takes for a loss
  }
}

void Session::send(MessageWriter writer) noexcept {
  AnswerFn answer;
  std::function<void()> on_cancel;
  {
    const std::lock_guard lock(mutex_);
    answer = std::exchange(answer_, nullptr);
    on_cancel = std::exchange(on_cancel_, nullptr);
  }
  if (answer) answer(std::move(writer));
}

bool Session::cancel() noexcept {
  AnswerFn answer;
  std::function<void()> on_cancel;
  {
    const std::lock_guard lock(mutex_);
    if (!answer_) return false;
    cancelled_ = true;
    answer = std::exchange(answer_, nullptr);
    on_cancel = std::exchange(on_cancel_, nullptr);
  }
  if (on_cancel) on_cancel();
  return true;
}

}  // namespace cohort::internal::rpc
