// A network between simulated processes, which delays, loses, cuts and resets, and channels over
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/membership/simulation/process.h"
#include "cohort/cluster/membership/simulation/random.h"
#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/service.h"

namespace cohort::internal::membership {

// A process in the network: at a host (what partitions cut), with its services by name.
struct Endpoint {
  int host = 0;
  SimulatedProcess* process = nullptr;
  std::function<rpc::Caller()> identity;  // as others see it
  std::map<std::string, rpc::Service*, std::less<>> services = {};
};

enum class Link { kUp, kSilent, kLoud };

// Thread safety: none.
class SimulatedNetwork {
 public:
  SimulatedNetwork(SimulatedTime& time, Random& random) : time_(time), random_(random) {}

  // Delays of messages: most at most `usual`, one in `rarely` up to `longest`.
  struct Delays {
    std::chrono::nanoseconds usual = std::chrono::milliseconds(2);
    std::chrono::nanoseconds longest = std::chrono::milliseconds(2);
    uint64_t rarely = 20;
  };
  Delays delays;

  // Endpoints live as long as the network.
  void add(Endpoint* endpoint) { endpoints_.push_back(endpoint); }
  // Says which process a name leads to; a new connection goes there.
  void bind(const std::string& address, Endpoint* endpoint) { bound_[address] = endpoint; }
  // One way.
  void set_link(int from, int to, Link link);
  Link link(int from, int to) const;
  bool all_up() const;
  void heal() { links_.clear(); }
  // Both ways.
  void reset_connections(int host, int other);
  // The system closes the connections of a process that has ended.
  void ended(Endpoint* endpoint);

  void start(Endpoint* from, Endpoint* to, std::string method, rpc::Message request,
             std::chrono::nanoseconds timeout, std::function<void(rpc::CallResult)> done);
  Endpoint* find(const std::string& address) const;
  uint64_t calls() const { return last_call_; }

 private:
  friend class SimulatedCall;
  struct Flight {
    Endpoint* from = nullptr;
    Endpoint* to = nullptr;
    std::function<void(rpc::CallResult)> done;
    std::function<void()> cancelled;  // the service's, while it keeps the call
    uint64_t timer = 0;
    bool arrived = false;
    bool caller_ended = false;  // before the request arrived
  };

  std::chrono::nanoseconds delay();
  void arrive(uint64_t call, rpc::Caller caller, const std::string& method, rpc::Message request,
              rpc::Clock::Time deadline);
  // The answer of a service goes back.
  void answer(uint64_t call, rpc::CallResult result);
  void finish(uint64_t call, rpc::CallResult result);
  // Breaks a call between two ends that still have each other's packets.
  void sever(uint64_t call, const std::string& why);
  void cancel_at_service(uint64_t call);

  SimulatedTime& time_;
  Random& random_;
  std::vector<Endpoint*> endpoints_;
  std::map<std::string, Endpoint*> bound_;
  std::map<std::pair<int, int>, Link> links_;
  std::map<uint64_t, Flight> flights_;
  uint64_t last_call_ = 0;
};

// Keeps to the process that it first reached, until a call to it fails.
class SimulatedChannel final : public rpc::Channel {
 public:
  SimulatedChannel(SimulatedNetwork& network, Endpoint* from, TaskId peer, std::string address)
      : network_(network), from_(from), peer_(std::move(peer)), address_(std::move(address)) {}

  const TaskId& peer() const override { return peer_; }
  const std::string& address() const override { return address_; }
  void start(std::string_view method, rpc::Message request, const rpc::CallOptions& options,
             std::function<void(rpc::CallResult)> done) override;
  void close() override {}

 private:
  SimulatedNetwork& network_;
  Endpoint* const from_;
  const TaskId peer_;
  const std::string address_;
  std::shared_ptr<Endpoint*> connected_ = std::make_shared<Endpoint*>(nullptr);
};

}  // namespace cohort::internal::membership
