#include "cohort/collective/forming/limited_communicator.h"

#include <algorithm>
#include <utility>

#include "cohort/collective/call_timeout.h"

namespace cohort::collective {
namespace {

class LimitedCommunicator final : public Communicator {
 public:
  LimitedCommunicator(std::shared_ptr<Communicator> backend, std::chrono::nanoseconds most)
      : backend_(std::move(backend)), most_(most) {}

  int rank() const override { return backend_->rank(); }
  int size() const override { return backend_->size(); }
  int64_t generation() const override { return backend_->generation(); }
  std::string task_name(int rank) const override { return backend_->task_name(rank); }
  bool compares_fingerprints(int64_t bytes) const override {
    return backend_->compares_fingerprints(bytes);
  }
  bool works_on(c10::Device device) const override { return backend_->works_on(device); }
  void check_alive() override { backend_->check_alive(); }
  Buffer buffer(int64_t bytes) override { return backend_->buffer(bytes); }

  std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                   const CallOptions& options) override {
    return backend_->all_reduce(buffers, limit(options));
  }
  std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers,
                                       std::span<const int64_t> counts,
                                       const CallOptions& options) override {
    return backend_->reduce_scatter(buffers, counts, limit(options));
  }
  std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers, std::span<const int64_t> counts,
                                   const CallOptions& options) override {
    return backend_->all_gather(buffers, counts, limit(options));
  }
  std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                  const CallOptions& options) override {
    return backend_->broadcast(buffers, root, limit(options));
  }
  void barrier(const CallOptions& options) override { backend_->barrier(limit(options)); }
  void gather_bytes(std::span<const char> mine, GatheredBytes& all,
                    const CallOptions& options) override {
    backend_->gather_bytes(mine, all, limit(options));
  }
  void abort(const std::exception_ptr& reason) noexcept override { backend_->abort(reason); }

 private:
  CallOptions limit(CallOptions options) const {
    if (ScopedCallTimeout::current().count() == 0) {
      options.timeout = std::min(options.timeout, most_);
    }
    return options;
  }

  const std::shared_ptr<Communicator> backend_;
  const std::chrono::nanoseconds most_;
};

}  // namespace

std::shared_ptr<Communicator> limited(std::shared_ptr<Communicator> communicator,
                                      std::chrono::nanoseconds most) {
  return std::make_shared<LimitedCommunicator>(std::move(communicator), most);
}

}  // namespace cohort::collective
