#include "cohort/cluster/control_service.h"

#include "cohort/cluster/rpc/service.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"

namespace cohort::internal {
namespace {

class ControlService : public rpc::Service {
 public:
  explicit ControlService(ServerContext& context) : context_(context) {}

  std::string_view name() const override { return "server"; }
  std::span<const rpc::MethodSpec> methods() const override { return kMethods; }

  void handle(size_t method, std::unique_ptr<rpc::Call> call) override {
    if (method == kWho) {
      std::ostringstream text;
      text << context_.task() << ' ' << std::hex << context_.identity()->incarnation();
      call->reply({.control = text.str()});
      return;
    }
    const std::string reason = call->request().control;
    log_info(context_.task(), ": ", call->caller().task, " ends this task",
             reason.empty() ? "" : ": ", reason);
    call->reply({});
    context_.request_stop(reason);
  }

 private:
  enum Method : size_t { kWho, kStop };
  static constexpr rpc::MethodSpec kMethods[] = {
      {.name = "who", .callers = rpc::kEverybody, .fenced = false},
      {.name = "stop", .callers = rpc::Role::kCoordinator, .max_control_bytes = 4096},
  };

  ServerContext& context_;
};

}  // namespace

std::shared_ptr<rpc::Service> make_control_service(ServerContext& context) {
  return std::make_shared<ControlService>(context);
}

}  // namespace cohort::internal
