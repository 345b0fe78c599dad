#include "cohort/collective/forming/limited_communicator.h"

#include <algorithm>
#include <utility>

#include "cohort/collective/call_timeout.h"
#include "cohort/collective/forwarding_communicator.h"

namespace cohort::collective {
namespace {

class LimitedCommunicator final : public ForwardingCommunicator {
 public:
  LimitedCommunicator(std::shared_ptr<Communicator> backend, std::chrono::nanoseconds most)
      : ForwardingCommunicator(std::move(backend)), most_(most) {}

 private:
  void before(CallOptions& options, int64_t) override {
    if (ScopedCallTimeout::current().count() == 0) {
      options.timeout = std::min(options.timeout, most_);
    }
  }

  const std::chrono::nanoseconds most_;
};

}  // namespace

std::shared_ptr<Communicator> limited(std::shared_ptr<Communicator> communicator,
                                      std::chrono::nanoseconds most) {
  return std::make_shared<LimitedCommunicator>(std::move(communicator), most);
}

}  // namespace cohort::collective
