#include "cohort/parameter_server/coordinator/server_save_group.h"

#include <utility>

#include "cohort/parameter_server/coordinator/coordinator_core.h"
#include "cohort/parameter_server/coordinator/leader_side.h"

namespace cohort::internal {
namespace {

class ServerSaveGroup final : public train::SaveGroup {
 public:
  explicit ServerSaveGroup(std::weak_ptr<LeaderSide> leader) : leader_(std::move(leader)) {}

  bool is_writer() const override { return true; }
  std::string name() const override { return ""; }
  std::vector<std::string> gather(std::string brought, const train::SaveGroupCall&) override {
    return {std::move(brought)};
  }
  std::string barrier(std::string words, const train::SaveGroupCall&) override { return words; }

  std::shared_ptr<void> hold_values(std::chrono::milliseconds timeout) override {
    const auto leader = leader_.lock();
    const auto coordinator = leader == nullptr ? nullptr : leader->coordinator();
    if (coordinator == nullptr) return nullptr;
    return coordinator->pause(std::chrono::steady_clock::now() + timeout);
  }
  void completed(const std::string& path) override {
    if (const auto leader = leader_.lock()) leader->set_last_checkpoint(path);
  }

 private:
  const std::weak_ptr<LeaderSide> leader_;
};

}  // namespace

std::shared_ptr<train::SaveGroup> make_server_save_group(const std::weak_ptr<LeaderSide>& leader) {
  return std::make_shared<ServerSaveGroup>(leader);
}

}  // namespace cohort::internal
