#include "cohort/collective/network/gloo_mesh.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <vector>

#include "cohort/core/error.h"

namespace cohort::collective {
namespace {

// Gloo's tasks leave their addresses in the group's store.
class MeshStore final : public gloo::rendezvous::Store {
 public:
  MeshStore(const GroupMember& member, int attempt, std::chrono::steady_clock::time_point deadline)
      : store_(*member.store),
        prefix_(internal::str("collective/", member.group, '/', member.generation, "/gloo/",
                              attempt, '/')),
        deadline_(deadline) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(prefix_ + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get(prefix_ + key, deadline_);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }

 private:
  GroupStore& store_;
  const std::string prefix_;
  const std::chrono::steady_clock::time_point deadline_;
};

}  // namespace

std::shared_ptr<gloo::Context> connect_gloo_mesh(const GroupMember& member, const std::string& host,
                                                 int attempt, std::chrono::milliseconds timeout) {
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(host.c_str()));
  const auto context = std::make_shared<gloo::rendezvous::Context>(member.rank, member.size());
  context->setTimeout(timeout);
  MeshStore store(member, attempt, std::chrono::steady_clock::now() + timeout);
  context->connectFullMesh(store, device);
  return context;
}

}  // namespace cohort::collective
