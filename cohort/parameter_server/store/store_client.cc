#include "cohort/parameter_server/store/store_client.h"

#include <future>
#include <utility>

namespace cohort::internal {
StoreClient::StoreClient(int num_ps, GetChannel channel, std::chrono::milliseconds timeout)
    : num_ps_(num_ps), channel_(std::move(channel)), timeout_(timeout) {}

std::vector<rpc::CallResult> StoreClient::call_all(
    const char* method, std::vector<std::pair<int, rpc::Message>> requests) const {
  const rpc::CallOptions options{.timeout = timeout_, .max_reply_bytes = kMostStoreBytes};
  std::vector<std::future<rpc::CallResult>> answers;
  for (auto& [ps, request] : requests) {
    auto promise = std::make_shared<std::promise<rpc::CallResult>>();
    answers.push_back(promise->get_future());
    channel_(ps)->start(method, std::move(request), options, [promise](rpc::CallResult result) {
      promise->set_value(std::move(result));
    });
  }
  std::vector<rpc::CallResult> results;
  for (auto& answer : answers) results.push_back(answer.get());  // each call has its deadline
  for (const rpc::CallResult& result : results) {
    if (result.error != nullptr) std::rethrow_exception(result.error);
  }
  return results;
}

void StoreClient::create(const ShardPlace& place, const std::string& name,
                         const Tensor& value) const {
  std::vector<std::pair<int, rpc::Message>> requests;
  requests.emplace_back(place.ps, encode(CreateRequest{place.key, name, value}));
  call_all("store/create", std::move(requests));
}

std::vector<VariableStore::Value> StoreClient::read(std::span<const Known> shards) const {
  std::vector<ReadRequest> of_ps(static_cast<size_t>(num_ps_));
  std::vector<std::vector<size_t>> positions(of_ps.size());
  for (size_t i = 0; i < shards.size(); ++i) {
    const auto ps = static_cast<size_t>(shards[i].place.ps);
    of_ps[ps].entries.push_back({shards[i].place.key, shards[i].version});
    positions[ps].push_back(i);
  }
  std::vector<std::pair<int, rpc::Message>> requests;
  for (size_t ps = 0; ps < of_ps.size(); ++ps) {
    if (!positions[ps].empty()) requests.emplace_back(static_cast<int>(ps), encode(of_ps[ps]));
  }
  std::vector<int> order;
  for (const auto& [ps, request] : requests) order.push_back(ps);
  const auto results = call_all("store/read", std::move(requests));
  std::vector<VariableStore::Value> values(shards.size());
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

Tensor StoreClient::read_rows(const ShardPlace& place, const Tensor& indices) const {
  std::vector<std::pair<int, rpc::Message>> requests;
  requests.emplace_back(place.ps, encode(RowsRequest{place.key, indices}));
  const auto results = call_all("store/rows", std::move(requests));
  ReadReply reply = decode_read_reply(results[0].reply);
  if (reply.values.size() != 1) throw DataLossError("a store answered without rows");
  return std::move(reply.values[0].tensor);
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

}  // namespace cohort::internal
