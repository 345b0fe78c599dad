#include "cohort/parameter_server/store/store_client.h"

#include <future>
#include <map>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/core/error.h"
#include "cohort/parameter_server/store/packed_message.h"

namespace cohort::internal {
StoreClient::StoreClient(int num_ps, GetChannel channel, GetSession session, Explain explain,
                         std::chrono::milliseconds timeout)
    : num_ps_(num_ps),
      channel_(std::move(channel)),
      session_(std::move(session)),
      explain_(std::move(explain)),
      timeout_(timeout) {}

rpc::CallOptions StoreClient::call_options(std::optional<std::chrono::milliseconds> timeout) const {
  return {
      .timeout = timeout.value_or(timeout_), .max_reply_bytes = kMostStoreBytes, .same_host = true};
}

void StoreClient::send(int ps, const char* method, rpc::Message request, SessionId session,
                       std::function<void(rpc::CallResult)> done,
                       std::optional<std::chrono::milliseconds> timeout) const {
  rpc::Message whole = packed(std::move(request));
  stamp(whole, session);
  channel_(ps)->start(method, std::move(whole), call_options(timeout), std::move(done));
}

std::vector<rpc::CallResult> StoreClient::call_all(
    const char* method, std::vector<std::pair<int, rpc::Message>> requests,
    std::optional<std::chrono::milliseconds> timeout) const {
  std::vector<std::future<rpc::CallResult>> answers;
  std::vector<rpc::CallResult> results;
  if (requests.empty()) return results;
  const SessionId session = session_();
  for (size_t i = 0; i + 1 < requests.size(); ++i) {
    auto promise = std::make_shared<std::promise<rpc::CallResult>>();
    answers.push_back(promise->get_future());
    send(
        requests[i].first, method, std::move(requests[i].second), session,
        [promise](rpc::CallResult result) { promise->set_value(std::move(result)); }, timeout);
  }
  // This thread receives the last answer itself.
  const int ps = requests.back().first;
  rpc::Message request = packed(std::move(requests.back().second));
  stamp(request, session);
  rpc::CallResult last = channel_(ps)->wait_for(method, std::move(request), call_options(timeout));
  for (auto& answer : answers) results.push_back(answer.get());  // each call has its deadline
  results.push_back(std::move(last));
  for (rpc::CallResult& result : results) {
    if (result.error != nullptr) std::rethrow_exception(explain_(result.error));
    if (auto reply = unpacked(result.reply)) result.reply = *std::move(reply);
  }
  return results;
}

std::vector<rpc::Message> StoreClient::ask(const char* method,
                                           std::vector<std::pair<int, rpc::Message>> requests,
                                           std::chrono::milliseconds timeout) const {
  std::vector<rpc::Message> replies;
  for (rpc::CallResult& result : call_all(method, std::move(requests), timeout)) {
    replies.push_back(std::move(result.reply));
  }
  return replies;
}

void StoreClient::tell(const char* method,
                       std::vector<std::pair<int, rpc::Message>> requests) const {
  const SessionId session = session_();
  for (auto& [ps, request] : requests) {
    send(ps, method, std::move(request), session, [](const rpc::CallResult&) {});
  }
}

void StoreClient::create(const NewShard& shard, const Tensor& value) const {
  create(shard.place.ps,
         {.key = shard.place.key, .name = shard.name, .value = value, .owner = shard.owner});
}

void StoreClient::create(const NewShard& shard, const KnownShard& known) const {
  create(shard.place.ps,
         {.key = shard.place.key, .name = shard.name, .known = known, .owner = shard.owner});
}

void StoreClient::create(int ps, const CreateRequest& request) const {
  std::vector<std::pair<int, rpc::Message>> requests;
  requests.emplace_back(ps, encode(request));
  call_all("store/create", std::move(requests));
}

template <class Request, class Entry>
std::vector<VariableStore::Value> StoreClient::ask_all(
    const char* method, std::span<const Entry> entries,
    const std::function<typename Request::Entry(const Entry&)>& question) const {
  std::vector<Request> of_ps(static_cast<size_t>(num_ps_));
  std::vector<std::vector<size_t>> positions(of_ps.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto ps = static_cast<size_t>(entries[i].place.ps);
    of_ps[ps].entries.push_back(question(entries[i]));
    positions[ps].push_back(i);
  }
  std::vector<std::pair<int, rpc::Message>> requests;
  std::vector<int> order;
  for (size_t ps = 0; ps < of_ps.size(); ++ps) {
    if (positions[ps].empty()) continue;
    requests.emplace_back(static_cast<int>(ps), encode(of_ps[ps]));
    order.push_back(static_cast<int>(ps));
  }
  const auto results = call_all(method, std::move(requests));
  std::vector<VariableStore::Value> values(entries.size());
  for (size_t r = 0; r < results.size(); ++r) {
    ReadReply reply = decode_read_reply(results[r].reply);
    const auto& places = positions[static_cast<size_t>(order[r])];
    if (reply.values.size() != places.size()) {
      throw DataLossError(str("ps task ", order[r], " answered with ", reply.values.size(),
                              " values instead of ", places.size()));
    }
    for (size_t i = 0; i < places.size(); ++i) values[places[i]] = std::move(reply.values[i]);
  }
  return values;
}

std::vector<VariableStore::Value> StoreClient::read(std::span<const Known> shards) const {
  std::vector<VariableStore::Value> values = read_if_there(shards);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].is_missing()) continue;
    const ShardPlace& place = shards[i].place;
    throw_error(Code::kNotFound, no_shard_text(place.key, shards[i].variable),
                to_string(TaskId{kPs, place.ps}));
  }
  return values;
}

std::vector<VariableStore::Value> StoreClient::read_if_there(std::span<const Known> shards) const {
  return ask_all<ReadRequest, Known>("store/read", shards, [](const Known& known) {
    return ReadRequest::Entry{known.place.key, known.version};
  });
}

std::vector<VariableStore::Value> StoreClient::read_rows(std::span<const Rows> rows) const {
  auto values = ask_all<RowsRequest, Rows>("store/rows", rows, [](const Rows& one) {
    return RowsRequest::Entry{one.place.key, one.indices};
  });
  for (size_t i = 0; i < values.size(); ++i) check_rows(values[i], rows[i]);
  return values;
}

void StoreClient::check_rows(const VariableStore::Value& value, const Rows& asked) {
  const Tensor& tensor = value.tensor;
  if (tensor.defined() && tensor.dim() > 0 && tensor.size(0) == asked.indices.numel()) return;
  throw DataLossError(str("ps task ", asked.place.ps, " answered with other rows"));
}

VariableStore::Load StoreClient::load(int ps) const {
  std::vector<std::pair<int, rpc::Message>> requests;
  requests.emplace_back(ps, rpc::Message{.control = ""});
  return decode_load(call_all("store/load", std::move(requests))[0].reply);
}

void StoreClient::release(const std::vector<Release>& shards, const Failed& failed) const {
  std::map<int, std::vector<Release>> of_ps;
  for (const Release& one : shards) of_ps[one.place.ps].push_back(one);
  const SessionId session = session_();
  for (auto& [ps, its] : of_ps) {
    ReleaseRequest request;
    for (const Release& one : its) request.shards.push_back({one.place.key, one.name});
    send(ps, "store/release", encode(request), session,
         [failed, its = std::move(its)](const rpc::CallResult& result) mutable {
           if (result.error != nullptr) failed(std::move(its));
         });
  }
}

void StoreClient::apply(std::vector<std::vector<StoreOp>> ops, const Push& push) const {
  std::vector<std::pair<int, rpc::Message>> requests;
  for (size_t ps = 0; ps < ops.size(); ++ps) {
    if (ops[ps].empty()) continue;
    requests.emplace_back(static_cast<int>(ps),
                          encode(ApplyRequest{push.token, push.forget_below, std::move(ops[ps])}));
  }
  call_all("store/apply", std::move(requests));
}

std::shared_ptr<PushUnderWay> StoreClient::start(std::vector<std::vector<StoreOp>> ops,
                                                 const Push& push, const Pull& pull) const {
  const auto num_ps = static_cast<size_t>(num_ps_);
  ops.resize(num_ps);
  std::vector<PushPullRequest> of_ps(num_ps);
  std::vector<PushUnderWay::Asked> places(num_ps);
  for (size_t i = 0; i < pull.shards.size(); ++i) {
    const auto ps = static_cast<size_t>(pull.shards[i].place.ps);
    of_ps[ps].read.entries.push_back({pull.shards[i].place.key, pull.shards[i].version});
    places[ps].shards.push_back(i);
  }
  for (size_t i = 0; i < pull.rows.size(); ++i) {
    const auto ps = static_cast<size_t>(pull.rows[i].place.ps);
    of_ps[ps].rows.entries.push_back({pull.rows[i].place.key, pull.rows[i].indices});
    places[ps].rows.push_back(i);
  }
  struct Call {
    const char* method;
    rpc::Message request;
  };
  std::vector<Call> calls;
  std::vector<PushUnderWay::Asked> asked;
  for (size_t ps = 0; ps < num_ps; ++ps) {
    const bool reads = !places[ps].shards.empty() || !places[ps].rows.empty();
    if (ops[ps].empty() && !reads) continue;
    of_ps[ps].push = {push.token, push.forget_below, std::move(ops[ps])};
    calls.push_back(reads ? Call{"store/push_pull", encode(of_ps[ps])}
                          : Call{"store/apply", encode(of_ps[ps].push)});
    places[ps].ps = static_cast<int>(ps);
    asked.push_back(std::move(places[ps]));
  }
  const SessionId session = session_();
  const auto under_way = std::make_shared<PushUnderWay>(asked);
  for (size_t i = 0; i < calls.size(); ++i) {
    send(asked[i].ps, calls[i].method, std::move(calls[i].request), session,
         [under_way, i](rpc::CallResult result) { under_way->answered(i, std::move(result)); });
  }
  return under_way;
}

}  // namespace cohort::internal
