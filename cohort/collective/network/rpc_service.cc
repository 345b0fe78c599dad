#include "cohort/collective/network/rpc_service.h"

#include <utility>
#include <vector>

#include "cohort/cluster/server_core.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::collective {
namespace {

using internal::str;
namespace rpc = internal::rpc;

constexpr size_t kMostEnded = 64;

std::shared_ptr<RpcService> service_in(const rpc::Dispatcher& dispatcher) {
  for (const rpc::MethodEntry& entry : dispatcher.table()) {
    if (auto service = std::dynamic_pointer_cast<RpcService>(entry.service)) return service;
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<RpcService> RpcService::of(internal::ServerCore& server) {
  if (auto service = service_in(server.dispatcher())) return service;
  auto service = std::make_shared<RpcService>();
  try {
    server.add(service);
  } catch (const AlreadyExistsError&) {  // another thread was faster
    return service_in(server.dispatcher());
  }
  return service;
}

void RpcService::handle(size_t method, std::unique_ptr<rpc::Call> call) {
  const RpcEnvelope envelope = RpcEnvelope::decode(call->request().control);
  const std::shared_ptr<RpcMailbox> mailbox = find(envelope);
  if (!mailbox) return call->reply({});
  method == 0 ? mailbox->put(envelope, std::move(call)) : mailbox->watch(envelope, std::move(call));
}

std::shared_ptr<RpcMailbox> RpcService::find(const RpcEnvelope& envelope) const {
  const std::lock_guard lock(mutex_);
  const auto found = mailboxes_.find({envelope.group, envelope.generation});
  if (found != mailboxes_.end()) return found->second;
  std::string others;
  for (const auto& [key, mailbox] : mailboxes_) {
    if (key.first == envelope.group) others += str(others.empty() ? "" : ", ", key.second);
  }
  for (const Ended& ended : ended_) {
    if (ended.session != envelope.session) continue;
    if (ended.error) std::rethrow_exception(ended.error);
    return nullptr;
  }
  throw FailedPreconditionError(str("this task is not in generation ", envelope.generation,
                                    " of group ", internal::quoted(envelope.group),
                                    others.empty() ? "" : "; it is in ", others,
                                    "; form the group again"));
}

void RpcService::stop() {
  std::vector<std::shared_ptr<RpcMailbox>> mailboxes;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (const auto& [key, mailbox] : mailboxes_) mailboxes.push_back(mailbox);
  }
  for (const auto& mailbox : mailboxes) {
    mailbox->fail(std::make_exception_ptr(CancelledError("the server of this task stops")));
  }
}

void RpcService::add(std::shared_ptr<RpcMailbox> mailbox) {
  const std::lock_guard lock(mutex_);
  if (stopped_) throw CancelledError("the server of this task has stopped");
  const Key key{mailbox->group(), mailbox->generation()};
  if (mailboxes_.try_emplace(key, std::move(mailbox)).second) return;
  throw AlreadyExistsError(str("this task is already in generation ", key.second, " of group '",
                               key.first, "'; each forming needs a generation of its own"));
}

void RpcService::remove(RpcMailbox& mailbox) {
  const std::exception_ptr error = mailbox.leave();
  const Key key{mailbox.group(), mailbox.generation()};
  const std::lock_guard lock(mutex_);
  mailboxes_.erase(key);
  ended_.push_back({key, mailbox.session(), error});
  if (ended_.size() > kMostEnded) ended_.pop_front();
}

}  // namespace cohort::collective
