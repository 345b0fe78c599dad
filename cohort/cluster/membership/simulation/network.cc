#include "cohort/cluster/membership/simulation/network.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal::membership {
namespace {

constexpr std::chrono::milliseconds kLoopback(0);

std::exception_ptr unavailable(const std::string& why) {
  return make_error(Code::kUnavailable, why);
}

}  // namespace

class SimulatedCall final : public rpc::Call {
 public:
  SimulatedCall(SimulatedNetwork& network, uint64_t id, rpc::Caller caller, rpc::Message request,
                rpc::Clock::Time deadline)
      : network_(network),
        id_(id),
        caller_(std::move(caller)),
        request_(std::move(request)),
        deadline_(deadline) {}
  ~SimulatedCall() override {
    if (!answered_) fail(make_error(Code::kInternal, "a service gave a call up"));
  }

  const rpc::Caller& caller() const override { return caller_; }
  const rpc::Message& request() const override { return request_; }
  std::chrono::steady_clock::time_point deadline() const override { return deadline_; }
  void reply(rpc::Message message) override {
    answer({.error = nullptr, .reply = std::move(message)});
  }
  void fail(std::exception_ptr error) override { answer({.error = std::move(error), .reply = {}}); }
  void on_cancel(std::function<void()> cancelled) override {
    const auto flight = network_.flights_.find(id_);
    if (flight != network_.flights_.end()) flight->second.cancelled = std::move(cancelled);
  }

 private:
  void answer(rpc::CallResult result) {
    answered_ = true;
    network_.answer(id_, std::move(result));
  }

  SimulatedNetwork& network_;
  const uint64_t id_;
  const rpc::Caller caller_;
  const rpc::Message request_;
  const rpc::Clock::Time deadline_;
  bool answered_ = false;
};

std::chrono::nanoseconds SimulatedNetwork::delay() {
  const auto longest = random_.one_in(delays.rarely) ? delays.longest : delays.usual;
  return random_.between(std::chrono::microseconds(50), longest);
}

void SimulatedNetwork::set_link(int from, int to, Link link) { links_[{from, to}] = link; }

Link SimulatedNetwork::link(int from, int to) const {
  const auto found = links_.find({from, to});
  return from == to || found == links_.end() ? Link::kUp : found->second;
}

bool SimulatedNetwork::all_up() const {
  return std::all_of(links_.begin(), links_.end(),
                     [](const auto& entry) { return entry.second == Link::kUp; });
}

Endpoint* SimulatedNetwork::find(const std::string& address) const {
  const auto found = bound_.find(address);
  return found == bound_.end() ? nullptr : found->second;
}

void SimulatedNetwork::start(Endpoint* from, Endpoint* to, std::string method, rpc::Message request,
                             std::chrono::nanoseconds timeout,
                             std::function<void(rpc::CallResult)> done) {
  const uint64_t id = ++last_call_;
  Flight& flight = flights_[id];
  flight.from = from;
  flight.to = to;
  flight.done = std::move(done);
  flight.timer = from->process->call_at(from->process->now() + timeout, [this, id] {
    cancel_at_service(id);
    finish(id, {.error = make_error(Code::kDeadlineExceeded, "no answer in time"), .reply = {}});
  });
  const auto wait = from->host == to->host ? std::chrono::nanoseconds(kLoopback) : delay();
  switch (link(from->host, to->host)) {
    case Link::kSilent:
      return;
    case Link::kLoud:
      time_.after(wait, [this, id] { sever(id, "network is unreachable"); });
      return;
    case Link::kUp:
      break;
  }
  // What it says of itself goes with the request.
  time_.after(wait, [this, id, to, timeout, caller = from->identity(), method = std::move(method),
                     request = std::move(request)]() mutable {
    if (to->process->ended()) return sever(id, "connection refused");
    to->process->deliver([this, id, to, timeout, caller, method, request]() mutable {
      arrive(id, std::move(caller), method, std::move(request), to->process->now() + timeout);
    });
  });
}

void SimulatedNetwork::arrive(uint64_t call, rpc::Caller caller, const std::string& method,
                              rpc::Message request, rpc::Clock::Time deadline) {
  const auto flight = flights_.find(call);
  if (flight == flights_.end()) return;  // the caller has given up, or has ended
  flight->second.arrived = true;
  const size_t slash = method.find('/');
  const auto service = flight->second.to->services.find(method.substr(0, slash));
  auto kept =
      std::make_unique<SimulatedCall>(*this, call, std::move(caller), std::move(request), deadline);
  if (service == flight->second.to->services.end()) {
    return kept->fail(make_error(Code::kUnimplemented, "no service '" + method + "'"));
  }
  const auto methods = service->second->methods();
  for (size_t i = 0; i < methods.size(); ++i) {
    if (methods[i].name != method.substr(slash + 1)) continue;
    service->second->handle(i, std::move(kept));
    const auto again = flights_.find(call);
    if (again != flights_.end() && again->second.caller_ended) {
      if (again->second.cancelled) again->second.cancelled();
      flights_.erase(call);
    }
    return;
  }
  kept->fail(make_error(Code::kUnimplemented, "no method '" + method + "'"));
}

void SimulatedNetwork::answer(uint64_t call, rpc::CallResult result) {
  const auto flight = flights_.find(call);
  if (flight == flights_.end()) return;
  flight->second.cancelled = nullptr;
  if (flight->second.caller_ended) return;
  const Endpoint* from = flight->second.from;
  const Endpoint* to = flight->second.to;
  if (link(to->host, from->host) != Link::kUp) return;  // the caller's deadline ends it
  const auto wait = from->host == to->host ? std::chrono::nanoseconds(kLoopback) : delay();
  time_.after(wait, [this, call, result = std::move(result)] {
    const auto found = flights_.find(call);
    if (found == flights_.end()) return;
    found->second.from->process->deliver([this, call, result] { finish(call, result); });
  });
}

void SimulatedNetwork::finish(uint64_t call, rpc::CallResult result) {
  const auto found = flights_.find(call);
  if (found == flights_.end()) return;
  if (found->second.caller_ended) return;
  const Flight flight = std::move(found->second);
  flights_.erase(found);
  time_.cancel(flight.timer);
  flight.done(std::move(result));
}

void SimulatedNetwork::cancel_at_service(uint64_t call) {
  const auto found = flights_.find(call);
  if (found == flights_.end() || !found->second.cancelled) return;
  const auto cancelled = std::exchange(found->second.cancelled, nullptr);
  SimulatedProcess* process = found->second.to->process;
  if (link(found->second.from->host, found->second.to->host) != Link::kUp) return;
  time_.after(delay(), [process, cancelled] { process->deliver(cancelled); });
}

void SimulatedNetwork::sever(uint64_t call, const std::string& why) {
  const auto found = flights_.find(call);
  if (found == flights_.end()) return;
  cancel_at_service(call);
  if (link(found->second.to->host, found->second.from->host) == Link::kSilent) return;
  SimulatedProcess* process = found->second.from->process;
  time_.after(delay(), [this, process, call, why] {
    process->deliver([this, call, why] { finish(call, {.error = unavailable(why), .reply = {}}); });
  });
}

void SimulatedNetwork::reset_connections(int host, int other) {
  std::vector<uint64_t> calls;
  for (const auto& [id, flight] : flights_) {
    const int from = flight.from->host;
    const int to = flight.to->host;
    if ((from == host && to == other) || (from == other && to == host)) calls.push_back(id);
  }
  for (const uint64_t call : calls) sever(call, "connection reset by peer");
}

void SimulatedNetwork::ended(Endpoint* endpoint) {
  std::vector<uint64_t> to;
  std::vector<uint64_t> from;
  for (const auto& [id, flight] : flights_) {
    if (flight.from == endpoint) from.push_back(id);
    if (flight.to == endpoint) to.push_back(id);
  }
  for (const uint64_t call : from) {
    cancel_at_service(call);
    Flight& flight = flights_[call];
    time_.cancel(flight.timer);
    flight.caller_ended = true;
    if (flight.arrived) flights_.erase(call);
  }
  for (const uint64_t call : to) {
    if (flights_.count(call) != 0) sever(call, "connection closed by peer");
  }
}

void SimulatedChannel::start(std::string_view method, rpc::Message request,
                             const rpc::CallOptions& options,
                             std::function<void(rpc::CallResult)> done) {
  if (*connected_ == nullptr) *connected_ = network_.find(address_);
  if (*connected_ == nullptr) {
    from_->process->call_at(from_->process->now(), [done] {
      done({.error = unavailable("nobody has this address"), .reply = {}});
    });
    return;
  }
  network_.start(from_, *connected_, std::string(method), std::move(request), options.timeout,
                 [connected = connected_, done = std::move(done)](rpc::CallResult result) {
                   const Code code = result.error ? record_error(result.error).code : Code::kOk;
                   if (code == Code::kUnavailable || code == Code::kDeadlineExceeded) {
                     *connected = nullptr;
                   }
                   done(std::move(result));
                 });
}

}  // namespace cohort::internal::membership
