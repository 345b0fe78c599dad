// The servers of this process, for layers above that add services to them: a strategy may be made
// before its task's server or, in an in-process cluster, after.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal {

class ServerCore;

// Calls `attach` for every server that runs in this process, and for each one that starts later, as
// long as the result and `owner` live. `owner` does not end while `attach` runs: if that had its last reference, it
// ends when it may call these functions again. `attach` must not make servers, nor call these functions.
// Thread safety: any thread.
[[nodiscard]] std::shared_ptr<void> attach_to_servers(std::weak_ptr<void> owner,
                                                      std::function<void(ServerCore&)> attach);

// Calls `use` with this process's server of this task of the cluster, which cannot end meanwhile; returns whether there is
// one. Several clusters of one process have tasks of the same name.
bool with_server(const train::ClusterSpec& cluster, const TaskId& task,
                 const std::function<void(ServerCore&)>& use);

// Whether the server with this incarnation is one of this process, which the calling thread has made and
// nobody has asked to end: so it will not end while that thread waits.
bool is_left_to_this_thread(uint64_t incarnation);

// A server is one of this process as long as this lives; what is attached to servers is attached to it first.
class RegisteredServer {
 public:
  // Errors: those of what is attached.
  explicit RegisteredServer(ServerCore& server);
  // Waits for who uses the server (with_server).
  ~RegisteredServer();
  RegisteredServer(const RegisteredServer&) = delete;
  RegisteredServer& operator=(const RegisteredServer&) = delete;

 private:
  ServerCore& server_;
};

}  // namespace cohort::internal
