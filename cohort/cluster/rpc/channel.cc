#include "cohort/cluster/rpc/channel.h"

#include <future>

namespace cohort::internal::rpc {

Message Channel::call(std::string_view method, Message request, const CallOptions& options) {
  auto promise = std::make_shared<std::promise<CallResult>>();
  std::future<CallResult> future = promise->get_future();
  start(method, std::move(request), options,
        [promise](CallResult result) { promise->set_value(std::move(result)); });
  CallResult result = future.get();
  if (result.error) std::rethrow_exception(result.error);
  return std::move(result.reply);
}

}  // namespace cohort::internal::rpc
