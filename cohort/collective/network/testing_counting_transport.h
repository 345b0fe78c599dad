// What a task of a group sends: messages and bytes, as an algorithm hands them to its transport.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "cohort/collective/forwarding_communicator.h"
#include "cohort/collective/network/transport.h"

namespace cohort::collective {

// As many are received in a group whose tasks all send alike.
struct Sent {
  int64_t messages = 0;
  int64_t bytes = 0;
};

// Forwards everything. `sent` outlives it, and is read while no call is under way.
class CountingTransport final : public Transport {
 public:
  CountingTransport(std::unique_ptr<Transport> backend, Sent& sent)
      : backend_(std::move(backend)), sent_(sent) {}

  char* memory(size_t bytes) override { return backend_->memory(bytes); }
  void send(int to, const void* data, size_t bytes) override {
    ++sent_.messages;
    sent_.bytes += static_cast<int64_t>(bytes);
    backend_->send(to, data, bytes);
  }
  void expect(int from, void* into, size_t bytes) override { backend_->expect(from, into, bytes); }
  const void* receive(int from, Deadline deadline) override {
    return backend_->receive(from, deadline);
  }
  bool is_late(int from) override { return backend_->is_late(from); }
  int finish(Deadline deadline) override { return backend_->finish(deadline); }
  void fail(const std::exception_ptr& error) noexcept override { backend_->fail(error); }
  void check() override { backend_->check(); }
  void on_end(std::function<void()> ended) override { backend_->on_end(std::move(ended)); }

 private:
  const std::unique_ptr<Transport> backend_;
  Sent& sent_;
};

// Where there is no transport: a call counts as one message, of the bytes that the task brings.
class CountingCommunicator final : public ForwardingCommunicator {
 public:
  CountingCommunicator(std::shared_ptr<Communicator> backend, Sent& sent)
      : ForwardingCommunicator(std::move(backend)), sent_(sent) {}

 private:
  void before(CallOptions&, int64_t bytes) override {
    ++sent_.messages;
    sent_.bytes += bytes;
  }

  Sent& sent_;
};

}  // namespace cohort::collective
