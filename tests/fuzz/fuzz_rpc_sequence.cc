// Any calls in any order, of any callers, to a coordination service: each is answered once, with an
// error of ours if with any; nobody who is fenced changes anything; what is asked twice happens
// once.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/cluster/membership/coordination_service.h"
#include "cohort/cluster/membership/simulation/direct_call.h"
#include "cohort/cluster/membership/simulation/process.h"
#include "cohort/core/error.h"
#include "tests/fuzz/input_reader.h"

namespace {

using namespace cohort;
using namespace cohort::internal;
using namespace cohort::internal::membership;
using std::chrono::milliseconds;

constexpr int kTasks = 3;

void require_of_calls(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "does not hold: " << property << '\n';
  std::abort();
}

class Cluster {
 public:
  Cluster() {
    CoordinationOptions options;
    options.incarnation = 99;
    options.self = {"worker", 0};
    for (int i = 0; i < kTasks; ++i) options.roster.tasks[{"worker", i}] = "";
    options.roster.heartbeat = kTestHeartbeat;
    options.store = {.keys_per_task = 50, .bytes = 4096};
    service_ = std::make_unique<CoordinationService>(clock_, std::move(options));
  }

  ~Cluster() {
    service_->stop();
    for (const auto& call : calls_) {
      require_of_calls(call->answers == 1, "each call has one answer");
    }
  }

  void step(fuzz::InputReader& in) {
    const uint64_t kind = in.number(19);
    if (kind == 0) return time_.run_until(time_.now() + milliseconds(in.number(3000)));
    const rpc::Caller caller{
        .task = {in.number(9) == 0 ? "evaluator" : "worker", static_cast<int>(in.number(kTasks))},
        .incarnation = in.number(3)};
    if (kind == 1) return service_->connection_lost(caller.task, caller.incarnation);
    if (kind == 2) return service_->process_gone(caller.task, caller.incarnation);
    if (kind == 3 && !calls_.empty()) return calls_[in.number(calls_.size() - 1)]->cancel();
    const size_t method = in.number(service_->methods().size() - 1);
    const std::string request = in.number(7) == 0 ? std::string(in.bytes(64)) : message(method, in);
    make(method, caller, request);
  }

 private:
  std::string message(size_t method, fuzz::InputReader& in) {
    const auto version = static_cast<int64_t>(in.number(20));
    switch (method) {
      case CoordinationService::kRegister: {
        RegisterRequest request{.address = std::string(in.bytes(8)),
                                .term_seen = static_cast<int64_t>(in.number(2)),
                                .generation_seen = static_cast<int64_t>(in.number(9))};
        if (in.number(7) == 0)
          request.program.push_back({"p", std::string(in.bytes(3)), in.flag()});
        return request.encode();
      }
      case CoordinationService::kHeartbeat:
        return HeartbeatRequest{.seen = version, .figures = {{"f", 1}}}.encode();
      case CoordinationService::kWatch:
      case CoordinationService::kAttend:
        return WatchRequest{.since = version, .at_most = milliseconds(in.number(5000))}.encode();
      case CoordinationService::kBarrier: {
        BarrierRequest request{.id = in.number(3),
                               .name = std::string(1, 'a' + char(in.number(2)))};
        if (in.flag()) request.tasks = {{"worker", 0}, {"worker", static_cast<int>(in.number(3))}};
        request.generation = static_cast<int64_t>(in.number(4));
        request.at_most = milliseconds(in.number(3000));
        return request.encode();
      }
      default: {
        StoreRequest request{.id = in.number(9), .key = std::string(1, 'a' + char(in.number(2)))};
        request.value = std::string(in.bytes(4));
        request.delta = 1;
        request.session = in.flag();
        request.generation = static_cast<int64_t>(in.number(4));
        request.at_most = milliseconds(in.number(1000));
        return request.encode();
      }
    }
  }

  void make(size_t method, const rpc::Caller& caller, const std::string& request) {
    const View before = service_->status();
    const bool was_live = live(before, caller);
    const auto call = call_service(*service_, method, caller, request);
    calls_.push_back(call);
    const View after = service_->status();
    check_group(before, after);
    if (call->error) {
      require_of_calls(record_error(call->error).code != Code::kInternal &&
                           record_error(call->error).code != Code::kUnknown,
                       "errors are of the classes that callers know");
    }
    const bool changes =
        method == CoordinationService::kSet || method == CoordinationService::kAdd ||
        method == CoordinationService::kRemove || method == CoordinationService::kBarrier ||
        method == CoordinationService::kReport;
    if (!call->answered() || call->error || !changes) return;
    require_of_calls(was_live, "only live incarnations change anything");
    if (method == CoordinationService::kAdd) check_add(caller, request, call->control);
  }

  static bool live(const View& view, const rpc::Caller& caller) {
    const Member* member = view.find(caller.task);
    return member != nullptr && member->state == TaskState::kAlive &&
           member->incarnation == caller.incarnation;
  }

  void check_group(const View& before, const View& after) {
    require_of_calls(after.generation >= before.generation, "generations only rise");
    require_of_calls(after.version >= before.version, "versions only rise");
    std::string members;
    for (const Member& member : after.members) {
      if (member.observer) continue;
      const bool alive = member.state == TaskState::kAlive;
      members += str(alive ? member.incarnation : 0, ' ');
      auto& ended = ended_[member.task];
      require_of_calls(!alive || ended.count(member.incarnation) == 0,
                       "who has ended does not come back");
      if (!alive && member.incarnation != 0) ended.insert(member.incarnation);
    }
    if (after.generation == 0) return;
    const auto [known, is_new] = members_.try_emplace(after.generation, members);
    require_of_calls(is_new || known->second == members, "a generation has one set of members");
  }

  // The same number of one incarnation: the same answer.
  void check_add(const rpc::Caller& caller, const std::string& request, const std::string& reply) {
    const uint64_t id = StoreRequest::decode(request).id;
    if (id == 0) return;
    const auto key = std::pair(std::pair(caller.task, caller.incarnation), id);
    const auto [known, is_new] = adds_.try_emplace(key, reply);
    require_of_calls(is_new || known->second == reply || calls_.size() > 64,
                     "what is asked twice happens once");
  }

  SimulatedTime time_;
  SimulatedProcess clock_{time_, 1.0, std::chrono::seconds(1000)};
  std::unique_ptr<CoordinationService> service_;
  std::vector<std::shared_ptr<CallState>> calls_;
  std::map<int64_t, std::string> members_;
  std::map<TaskId, std::set<uint64_t>> ended_;
  std::map<std::pair<std::pair<TaskId, uint64_t>, uint64_t>, std::string> adds_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::InputReader in({reinterpret_cast<const char*>(data), std::min<size_t>(size, 2000)});
  Cluster cluster;
  while (!in.empty()) cluster.step(in);
  return 0;
}
