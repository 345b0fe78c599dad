#include "cohort/cluster/server_registry.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/cluster/server_core.h"

namespace cohort::internal {
namespace {

struct Registry {
  std::mutex mutex;  // guards what follows
  std::vector<ServerCore*> servers;
  std::list<std::function<void(ServerCore&)>> attachments;
};

Registry& registry() {
  static auto* const all = new Registry;  // servers may outlive static objects
  return *all;
}

}  // namespace

std::shared_ptr<void> attach_to_servers(std::function<void(ServerCore&)> attach) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (ServerCore* server : all.servers) attach(*server);
  const auto place = all.attachments.insert(all.attachments.end(), std::move(attach));
  return {nullptr, [place](void*) {
            Registry& registered = registry();
            const std::lock_guard unregistering(registered.mutex);
            registered.attachments.erase(place);
          }};
}

bool with_server(const TaskId& task, const std::function<void(ServerCore&)>& use) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (ServerCore* server : all.servers) {
    if (server->task() != task) continue;
    use(*server);
    return true;
  }
  return false;
}

bool is_left_to_this_thread(uint64_t incarnation) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return std::any_of(all.servers.begin(), all.servers.end(), [&](const ServerCore* server) {
    return server->identity()->incarnation() == incarnation &&
           server->maker() == std::this_thread::get_id() && !server->is_stopping();
  });
}

RegisteredServer::RegisteredServer(ServerCore& server) : server_(server) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const auto& attach : all.attachments) attach(server);
  all.servers.push_back(&server);
}

RegisteredServer::~RegisteredServer() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase(all.servers, &server_);
}

}  // namespace cohort::internal
