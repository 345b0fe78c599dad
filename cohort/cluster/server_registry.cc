// The servers of this process.
#include <algorithm>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/cluster/server_core.h"

namespace cohort::internal {
namespace {

struct Attachment {
  std::weak_ptr<void> owner;
  std::function<void(ServerCore&)> attach;
};

struct Registry {
  std::mutex mutex;  // guards what follows
  std::vector<ServerCore*> servers;
  std::list<Attachment> attachments;
};

Registry& registry() {
  static auto* const all = new Registry;  // servers may outlive static objects
  return *all;
}

}  // namespace

std::shared_ptr<void> attach_to_servers(std::weak_ptr<void> owner,
                                        std::function<void(ServerCore&)> attach) {
  Registry& all = registry();
  const std::shared_ptr<void> held = owner.lock();  // ends after the lock
  const std::lock_guard lock(all.mutex);
  if (held != nullptr) {
    for (ServerCore* server : all.servers) attach(*server);
  }
  const auto place = all.attachments.insert(all.attachments.end(),
                                            Attachment{std::move(owner), std::move(attach)});
  return {nullptr, [place](void*) {
            Registry& registered = registry();
            const std::lock_guard unregistering(registered.mutex);
            registered.attachments.erase(place);
          }};
}

bool with_server(const train::ClusterSpec& cluster, const TaskId& task,
                 const std::function<void(ServerCore&)>& use) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (ServerCore* server : all.servers) {
    if (server->task() != task || server->cluster_spec() != cluster) continue;
    use(*server);
    return true;
  }
  return false;
}

bool ServerCore::is_left_to_this_thread(uint64_t incarnation) const {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return std::any_of(all.servers.begin(), all.servers.end(), [&](const ServerCore* server) {
    return server->identity()->incarnation() == incarnation &&
           server->maker_ == std::this_thread::get_id() && !server->is_stopping();
  });
}

RegisteredServer::RegisteredServer(ServerCore& server) : server_(server) {
  Registry& all = registry();
  std::vector<std::shared_ptr<void>> held;  // ends after the lock: the end of an owner needs that
  const std::lock_guard lock(all.mutex);
  for (const Attachment& one : all.attachments) {
    held.push_back(one.owner.lock());
    if (held.back() != nullptr) one.attach(server);
  }
  all.servers.push_back(&server);
}

RegisteredServer::~RegisteredServer() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase(all.servers, &server_);
}

}  // namespace cohort::internal
