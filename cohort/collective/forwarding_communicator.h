// A communicator around another one, which sees every call.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "cohort/collective/communicator.h"
#include "cohort/collective/sum_division.h"

namespace cohort::collective {

// Forwards everything. Subclasses say what happens before a call, and may change its options.
class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(std::shared_ptr<Communicator> backend)
      : backend_(std::move(backend)) {}

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
    CallOptions own = options;
    before(own, buffers[0].bytes());
    return backend_->all_reduce(buffers, own);
  }
  void use_division(std::shared_ptr<const SumDivision> division) override {
    Communicator::use_division(division);
    backend_->use_division(std::move(division));
  }
  void all_reduce_parts(const Buffer& parts, const CallOptions& options) override {
    CallOptions own = options;
    before(own, parts.bytes() * static_cast<int64_t>(division().num_parts(rank())));
    backend_->all_reduce_parts(parts, own);
  }
  std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers,
                                       std::span<const int64_t> counts,
                                       const CallOptions& options) override {
    CallOptions own = options;
    before(own, buffers[0].bytes());
    return backend_->reduce_scatter(buffers, counts, own);
  }
  std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers, std::span<const int64_t> counts,
                                   const CallOptions& options) override {
    const Buffer& mine = buffers[0];
    CallOptions own = options;
    before(own, mine.at(counts[static_cast<size_t>(rank())]) - mine.at(0));
    return backend_->all_gather(buffers, counts, own);
  }
  std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                  const CallOptions& options) override {
    CallOptions own = options;
    before(own, rank() == root ? buffers[0].bytes() : 0);
    return backend_->broadcast(buffers, root, own);
  }
  void barrier(const CallOptions& options) override {
    CallOptions own = options;
    before(own, 0);
    backend_->barrier(own);
  }
  void gather_bytes(std::span<const char> mine, GatheredBytes& all,
                    const CallOptions& options) override {
    CallOptions own = options;
    before(own, static_cast<int64_t>(mine.size()));
    backend_->gather_bytes(mine, all, own);
  }
  void abort(const std::exception_ptr& reason) noexcept override { backend_->abort(reason); }

 protected:
  // bytes: what this task brings to the call.
  virtual void before(CallOptions& options, int64_t bytes) = 0;

 private:
  const std::shared_ptr<Communicator> backend_;
};

}  // namespace cohort::collective
