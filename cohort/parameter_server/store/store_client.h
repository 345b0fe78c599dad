// A task's calls to the stores of all ps tasks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/cluster/rpc/channel.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"
#include "cohort/parameter_server/store/push_under_way.h"
#include "cohort/parameter_server/store/store_message.h"

namespace cohort::internal {

// The place of a shard: its ps task.
struct ShardPlace {
  int ps = 0;
  ShardKey key;
};

// Errors of all: Unavailable (a ps task is lost; names it), DeadlineExceeded, those of
// VariableStore.
// Thread safety: any thread.
class StoreClient {
 public:
  // The calling task's channel to ps task `ps`.
  using GetChannel = std::function<std::shared_ptr<rpc::Channel>(int ps)>;
  // The calling thread's session (coordinator_fence.h), which every call carries.
  using GetSession = std::function<SessionId()>;
  // What a call's error is thrown as.
  using Explain = std::function<std::exception_ptr(const std::exception_ptr&)>;
  StoreClient(int num_ps, GetChannel channel, GetSession session, Explain explain,
              std::chrono::milliseconds timeout);

  int num_ps() const { return num_ps_; }

  struct NewShard {
    ShardPlace place;
    std::string name;
    std::optional<ShardKey> owner =
        std::nullopt;  // with which the ps task releases it; missing: release() will say so
  };
  void create(const NewShard& shard, const Tensor& value) const;
  // The ps task makes the value.
  void create(const NewShard& shard, const KnownShard& known) const;

  struct Known {
    ShardPlace place;
    int64_t version = -1;
    std::string_view variable = {};  // its name, for errors, as long as the call
  };
  // One call to each ps task that has any of the shards, all at once. In the order of `shards`; a
  // value that is undefined has not changed. Errors: also NotFound (no such shard).
  std::vector<VariableStore::Value> read(std::span<const Known> shards) const;
  // The same for who may not need them: values of shards that are not there are missing.
  std::vector<VariableStore::Value> read_if_there(std::span<const Known> shards) const;
  struct Rows {
    ShardPlace place;
    Tensor indices;
  };
  // Reads rows; none is undefined. Shapes: indices [n] of int64 -> [n, ..].
  std::vector<VariableStore::Value> read_rows(std::span<const Rows> rows) const;
  VariableStore::Load load(int ps) const;

  // Any method, one call to each of these ps tasks, all at once; in the order of the requests.
  // Errors: those of the first that fails, when all have answered.
  std::vector<rpc::Message> ask(const char* method,
                                std::vector<std::pair<int, rpc::Message>> requests,
                                std::chrono::milliseconds timeout) const;
  // The same without an answer.
  void tell(const char* method, std::vector<std::pair<int, rpc::Message>> requests) const;

  struct Push {
    uint64_t token = 0;
    uint64_t forget_below = 0;
  };
  // ops[i] are for ps task i. As read.
  void apply(std::vector<std::vector<StoreOp>> ops, const Push& push) const;

  // In one call to each ps task that has any of the shards. Returns at once; `failed` is called, on
  // any thread, with those of a ps task that cannot be told. Errors: those of GetChannel.
  struct Release {
    ShardPlace place;
    std::string name;
  };
  using Failed = std::function<void(std::vector<Release>)>;
  void release(const std::vector<Release>& shards, const Failed& failed) const;

  // What a push reads; as read_if_there.
  struct Pull {
    std::vector<Known> shards;
    std::vector<Rows> rows;
  };
  // Sends the operations and returns. Each ps task reads what it has of `pull` after them, in the
  // same call.
  std::shared_ptr<PushUnderWay> start(std::vector<std::vector<StoreOp>> ops, const Push& push,
                                      const Pull& pull) const;

 private:
  // Asks each ps task, and puts its answers at the places of `entries` where the questions were.
  static void check_rows(const VariableStore::Value& value, const Rows& asked);
  template <class Request, class Entry>
  std::vector<VariableStore::Value> ask_all(
      const char* method, std::span<const Entry> entries,
      const std::function<typename Request::Entry(const Entry&)>& question) const;
  rpc::CallOptions call_options(std::optional<std::chrono::milliseconds> timeout) const;
  void create(int ps, const CreateRequest& request) const;
  void send(int ps, const char* method, rpc::Message request, SessionId session,
            std::function<void(rpc::CallResult)> done,
            std::optional<std::chrono::milliseconds> timeout = std::nullopt) const;
  std::vector<rpc::CallResult> call_all(
      const char* method, std::vector<std::pair<int, rpc::Message>> requests,
      std::optional<std::chrono::milliseconds> timeout = std::nullopt) const;

  const int num_ps_;
  const GetChannel channel_;
  const GetSession session_;
  const Explain explain_;
  const std::chrono::milliseconds timeout_;
};

}  // namespace cohort::internal
