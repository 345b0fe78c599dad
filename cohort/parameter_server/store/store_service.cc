#include "cohort/parameter_server/store/store_service.h"

#include <algorithm>
#include <utility>

#include "cohort/cluster/rpc/frame.h"
#include "cohort/core/error.h"
#include "cohort/core/task.h"
#include "cohort/parameter_server/store/store_message.h"

namespace cohort::internal {
namespace {

constexpr size_t kMostControlBytes = rpc::kMaxHeaderBytes;
constexpr rpc::Roles kCallers = rpc::Role::kCoordinator | rpc::Role::kWorker;

// A worker that is lost changes the cluster's generation, which concerns no other worker's pushes:
// the methods are not fenced by it.
enum StoreMethod : size_t { kCreate, kRead, kRows, kApply };
constexpr rpc::MethodSpec kStoreMethods[] = {
    {.name = "create", .callers = kCallers, .max_bulk_bytes = kMostStoreBytes, .fenced = false},
    {.name = "read",
     .callers = kCallers | rpc::Role::kEvaluator,
     .fenced = false,
     .max_control_bytes = kMostControlBytes},
    {.name = "rows",
     .callers = kCallers | rpc::Role::kEvaluator,
     .max_bulk_bytes = kMostStoreBytes,
     .fenced = false},
    {.name = "apply",
     .callers = kCallers,
     .max_bulk_bytes = kMostStoreBytes,
     .fenced = false,
     .max_control_bytes = kMostControlBytes},
};

}  // namespace

StoreService::StoreService(TaskId self, std::shared_ptr<VariableStore> store)
    : self_(std::move(self)),
      store_(std::move(store)),
      pool_("store", std::max(4, num_usable_cores())) {}

std::span<const rpc::MethodSpec> StoreService::methods() const { return kStoreMethods; }

void StoreService::handle(size_t method, std::unique_ptr<rpc::Call> call) {
  const ScopedTask as_this_server(Task::named(self_.job, self_.index));
  pool_.schedule([this, method, call = std::shared_ptr<rpc::Call>(std::move(call))] {
    try {
      call->reply(answer(method, call->request()));
    } catch (...) {
      const ErrorRecord error = record_error(std::current_exception());
      call->fail(make_error(error.code, error.message, to_string(self_)));
    }
  });
}

rpc::Message StoreService::answer(size_t method, const rpc::Message& request) const {
  switch (method) {
    case kCreate: {
      const CreateRequest creation = decode_create(request);
      // The value lies in the message.
      store_->create(creation.key, creation.name, creation.value.clone());
      return {.control = ""};
    }
    case kRead: {
      ReadReply reply;
      for (const auto& [key, version] : decode_read(request).entries) {
        reply.values.push_back(store_->read(key, version));
      }
      return encode(reply);
    }
    case kRows: {
      const RowsRequest rows = decode_rows(request);
      return encode(ReadReply{{{0, store_->read_rows(rows.key, rows.indices)}}});
    }
    default: {
      const ApplyRequest push = decode_apply(request);
      store_->forget_tokens_below(push.forget_below);
      store_->apply(push.token, push.ops);
      return {.control = ""};
    }
  }
}

}  // namespace cohort::internal
