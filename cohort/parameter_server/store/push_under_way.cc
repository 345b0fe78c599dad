#include "cohort/parameter_server/store/push_under_way.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/parameter_server/store/packed_message.h"
#include "cohort/parameter_server/store/store_message.h"

namespace cohort::internal {

PushUnderWay::PushUnderWay(std::vector<Asked> asked)
    : asked_(std::move(asked)), answers_(asked_.size()) {
  answers_.lock()->results.resize(asked_.size());
}

void PushUnderWay::answered(size_t i, rpc::CallResult result) {
  std::vector<std::function<void(const std::exception_ptr&)>> waiting;
  std::exception_ptr failed;
  {
    const auto push = answers_.change();
    push->results[i] = std::move(result);
    if (--push->left > 0) return;
    waiting.swap(push->waiting);
    failed = push->error();
  }
  for (const auto& fn : waiting) fn(failed);
}

std::exception_ptr PushUnderWay::Answers::error() const {
  for (const rpc::CallResult& result : results) {
    if (result.error != nullptr) return result.error;
  }
  return nullptr;
}

std::exception_ptr PushUnderWay::wait() const {
  auto push = answers_.lock();
  push.wait([&] { return push->left == 0; });
  return push->error();
}

void PushUnderWay::on_end(std::function<void(const std::exception_ptr&)> fn) {
  std::exception_ptr failed;
  {
    const auto push = answers_.lock();
    if (push->left > 0) {
      push->waiting.push_back(std::move(fn));
      return;
    }
    failed = push->error();
  }
  fn(failed);
}

PushUnderWay::Values PushUnderWay::values() const {
  const auto push = answers_.lock();
  Values values;
  for (size_t r = 0; r < asked_.size(); ++r) {
    const Asked& asked = asked_[r];
    const size_t wanted = asked.shards.size() + asked.rows.size();
    if (wanted == 0) continue;
    const rpc::Message& answer = push->results[r].reply;
    const auto whole = unpacked(answer);
    ReadReply reply = decode_read_reply(whole ? *whole : answer);
    if (reply.values.size() != wanted) {
      throw DataLossError(str("ps task ", asked.ps, " answered with ", reply.values.size(),
                              " values instead of ", wanted));
    }
    size_t next = 0;
    const auto place = [&](std::vector<VariableStore::Value>& in, const std::vector<size_t>& at) {
      for (const size_t position : at) {
        in.resize(std::max(in.size(), position + 1));
        in[position] = std::move(reply.values[next++]);
      }
    };
    place(values.shards, asked.shards);
    place(values.rows, asked.rows);
  }
  return values;
}

}  // namespace cohort::internal
