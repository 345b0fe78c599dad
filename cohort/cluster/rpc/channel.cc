#include "cohort/cluster/rpc/channel.h"

#include <utility>

#include "cohort/cluster/rpc/awaited_answer.h"

namespace cohort::internal::rpc {

Message Channel::call(std::string_view method, Message request, const CallOptions& options) {
  CallResult result = wait_for(method, std::move(request), options);
  if (result.error) std::rethrow_exception(result.error);
  return std::move(result.reply);
}

CallResult Channel::wait_for(std::string_view method, Message request, const CallOptions& options) {
  AwaitedAnswer answer;
  start(method, std::move(request), options,
        [&answer](CallResult result) { answer.set(std::move(result)); });
  return answer.take();
}

}  // namespace cohort::internal::rpc
