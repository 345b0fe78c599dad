// A server's parts: services, the port, channels to other tasks, the end.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <typeindex>
#include <utility>

#include "cohort/cluster/channel_pool.h"
#include "cohort/cluster/coordination.h"
#include "cohort/cluster/grpc/grpc_server.h"
#include "cohort/cluster/metrics_server.h"
#include "cohort/cluster/rpc/dispatcher.h"
#include "cohort/cluster/same_host/host_server.h"
#include "cohort/cluster/security/insecure_warning.h"
#include "cohort/cluster/server_context.h"
#include "cohort/cluster/server_membership.h"
#include "cohort/cluster/server_options.h"
#include "cohort/cluster/signal_watch.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/program/process.h"

namespace cohort::internal {

// A task and its cluster, both checked.
struct ServerPlace {
  TaskId task;
  train::ClusterSpec spec;
  std::optional<distribute::cluster_resolver::Rendezvous> rendezvous;
};
// Errors: InvalidArgument, as the constructors of Server say.
ServerPlace place_of(const train::ClusterSpec& spec, const distribute::ServerOptions& options);
ServerPlace place_of(const distribute::cluster_resolver::ClusterResolver& resolver,
                     const distribute::ServerOptions& options);

class ServerCore;

// A server is one of this process as long as this lives. What is attached to servers is attached to
// it first.
class RegisteredServer {
 public:
  // Errors: those of the attached functions.
  explicit RegisteredServer(ServerCore& server);
  // Waits for calls of with_server that use the server.
  ~RegisteredServer();
  RegisteredServer(const RegisteredServer&) = delete;
  RegisteredServer& operator=(const RegisteredServer&) = delete;

 private:
  ServerCore& server_;
};

// Thread safety: any thread. Not destroyed in a child of fork (HomePtr), which would end its
// parent's server.
class ServerCore : public ServerContext {
 public:
  ServerCore(ServerPlace place, const distribute::ServerOptions& options);
  ~ServerCore() override;

  // A service of a layer above. Errors: those of Dispatcher::add.
  void add(std::shared_ptr<rpc::Service> service) { dispatcher_.add(std::move(service)); }
  rpc::Dispatcher& dispatcher() { return dispatcher_; }
  // Keeps an object of a layer above: one object of each type, found by that type.
  template <class Part>
  void keep(std::shared_ptr<Part> part) {
    parts_[typeid(Part)] = std::move(part);
  }
  // nullptr: there is none. While the server is being attached to (attach_to_servers).
  template <class Part>
  Part* kept() const {
    const auto found = parts_.find(typeid(Part));
    return found == parts_.end() ? nullptr : static_cast<Part*>(found->second.get());
  }

  distribute::Coordination& coordination() { return *coordination_; }
  ServerMembership& membership() { return *membership_; }

  // Errors of these two: also FailedPrecondition (in a child of fork).
  int join();
  void stop(const std::string& reason);
  // Whether the end of the server was requested.
  bool is_stopping() const;
  // The error with which the end was requested; nullptr: without one.
  std::exception_ptr stop_error() const;

  const TaskId& task() const override { return task_; }
  const std::string& address() const override { return address_; }
  const std::string& advertised_address() const override { return advertised_address_; }
  const std::shared_ptr<rpc::Identity>& identity() const override { return identity_; }
  train::ClusterSpec cluster_spec() const override;
  void set_cluster_spec(const train::ClusterSpec& spec) override;
  const std::optional<distribute::cluster_resolver::Rendezvous>& rendezvous() const override {
    return rendezvous_;
  }
  std::shared_ptr<rpc::Channel> channel(const TaskId& task) override;
  void set_fence(std::shared_ptr<const rpc::Fence> fence) override {
    dispatcher_.set_fence(std::move(fence));
  }
  bool is_left_to_this_thread(uint64_t incarnation) const override;
  void request_stop(const std::string& reason) override;
  void request_stop(std::exception_ptr error) override;

 private:
  void wait_for_end(const SignalWatch* signals);
  void finish(const std::string& reason);
  std::optional<rpc::Role> role_of(const TaskId& task) const;
  std::optional<std::string> address_of(const TaskId& task) const;

  const TaskId task_;
  const HomeProcess home_;
  const std::thread::id maker_ = std::this_thread::get_id();
  const std::optional<distribute::cluster_resolver::Rendezvous> rendezvous_;
  const bool stop_on_signals_;
  const std::shared_ptr<const security::Security> security_;
  const std::shared_ptr<rpc::Identity> identity_;
  mutable std::mutex mutex_;  // guards what follows
  train::ClusterSpec spec_;
  bool stop_requested_ = false;
  std::exception_ptr error_;
  int signal_ = 0;

  UniqueFd stop_event_;  // readable once the end was asked for
  ChannelPool channels_;
  rpc::Dispatcher dispatcher_;
  std::unique_ptr<rpc::HostServer> host_server_;
  std::unique_ptr<rpc::GrpcServer> server_;
  std::string address_;
  std::string advertised_address_;
  std::optional<security::InsecureWarning> warning_;
  std::shared_ptr<ServerMembership> membership_;
  std::optional<distribute::Coordination> coordination_;
  std::unique_ptr<MetricsServer> metrics_;
  std::once_flag membership_stopped_;
  std::map<std::type_index, std::shared_ptr<void>> parts_;  // guarded by the registry of servers
  // The last member: nobody finds a server whose parts end, nor one whose construction has failed.
  std::optional<RegisteredServer> registered_;
};

// For layers above that add services to the servers of this process: a strategy may be made before
// its task's server or, in an in-process cluster, after.

// Calls `attach` for every server that runs in this process, and for each one that starts later, as
// long as the result and `owner` live. `owner` does not end while `attach` runs: if that had its
// last reference, it ends when it may call these functions again. `attach` must not make servers,
// nor call these functions.
// Thread safety: any thread.
[[nodiscard]] std::shared_ptr<void> attach_to_servers(std::weak_ptr<void> owner,
                                                      std::function<void(ServerCore&)> attach);

// Calls `use` with this process's server of this task of the cluster, which cannot end meanwhile;
// returns whether there is one. Several clusters of one process have tasks of the same name.
bool with_server(const train::ClusterSpec& cluster, const TaskId& task,
                 const std::function<void(ServerCore&)>& use);

}  // namespace cohort::internal
