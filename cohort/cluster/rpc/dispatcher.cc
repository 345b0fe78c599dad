#include "cohort/cluster/rpc/dispatcher.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::rpc {
namespace {

// The greatest length of a service's or method's name. A name in a stranger's request may be
// longer.
constexpr size_t kMostNameBytes = 64;

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kMostNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

std::string name_in_text(std::string_view name) {
  return quoted(name.substr(0, kMostNameBytes)) + (name.size() > kMostNameBytes ? "..." : "");
}

// Errors: ResourceExhausted (`used` and `bytes` exceed `most`).
void take(std::atomic<size_t>& used, size_t bytes, size_t most, const std::string& server) {
  const size_t before = used.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes <= most) return;
  used.fetch_sub(bytes, std::memory_order_relaxed);
  throw ResourceExhaustedError(str(server, " is receiving ", before, " bytes; another ", bytes,
                                   " exceed its limit of ", most,
                                   ". Try again later, or in smaller calls"));
}

}  // namespace

Dispatcher::Dispatcher(DispatcherOptions options)
    : options_(std::move(options)), name_(to_string(options_.self)) {}

Dispatcher::~Dispatcher() { stop(); }

void Dispatcher::add(std::shared_ptr<Service> service) {
  const std::string name(service->name());
  if (!is_name(name)) {
    throw InvalidArgumentError(
        str("a service cannot be called ", quoted(name), "; use letters, digits and '_'"));
  }
  const std::lock_guard lock(mutex_);
  if (stopped_) {
    throw FailedPreconditionError(
        str("service '", name, "' cannot be added: the server of ", name_, " has stopped"));
  }
  if (services_.contains(name)) {
    throw AlreadyExistsError(str("the server of ", name_, " has a service '", name, "' already"));
  }
  const std::span<const MethodSpec> methods = service->methods();
  for (const MethodSpec& spec : methods) {
    if (!is_name(spec.name) || spec.max_control_bytes > kMaxHeaderBytes) {
      throw InvalidArgumentError(str("method ", quoted(spec.name), " of service '", name,
                                     "' has a wrong name, or takes more than ", kMaxHeaderBytes,
                                     " control bytes"));
    }
  }
  for (size_t i = 0; i < methods.size(); ++i) {
    std::string method = name + "/" + std::string(methods[i].name);
    methods_[method] = std::make_shared<const MethodEntry>(
        MethodEntry{.name = method, .service = service, .index = i, .spec = methods[i]});
  }
  services_[name] = std::move(service);
}

void Dispatcher::set_fence(std::shared_ptr<const Fence> fence) {
  const std::lock_guard lock(mutex_);
  fence_ = std::move(fence);
}

std::vector<MethodEntry> Dispatcher::table() const {
  const std::lock_guard lock(mutex_);
  std::vector<MethodEntry> rows;
  rows.reserve(methods_.size());
  for (const auto& [name, entry] : methods_) rows.push_back(*entry);
  return rows;
}

std::shared_ptr<Session> Dispatcher::make_session(const Peer& peer,
                                                  std::chrono::steady_clock::time_point deadline,
                                                  AnswerFn answer) {
  CallRules& rules = *this;
  return std::make_shared<Session>(rules, load_, peer, deadline, std::move(answer));
}

std::shared_ptr<Session> Dispatcher::begin(std::string_view method, const Peer& peer,
                                           std::chrono::steady_clock::time_point deadline,
                                           AnswerFn answer) {
  auto session = make_session(peer, deadline, std::move(answer));
  session->begin(method);
  return session;
}

std::shared_ptr<Session> Dispatcher::refuse(std::string_view method, const Peer& peer,
                                            const std::exception_ptr& error, AnswerFn answer) {
  auto session =
      make_session(peer, std::chrono::steady_clock::time_point::max(), std::move(answer));
  session->refuse(method.substr(0, kMostNameBytes), error);
  return session;
}

std::shared_ptr<const MethodEntry> Dispatcher::find(std::string_view method) const {
  if (calls_under_way() > options_.max_calls) {
    throw ResourceExhaustedError(str(name_, " has ", options_.max_calls,
                                     " calls under way and takes no more; try again later"));
  }
  const std::lock_guard lock(mutex_);
  if (stopped_) throw CancelledError(str("the server of ", name_, " has stopped"));
  const auto found = methods_.find(method);
  if (found != methods_.end()) return found->second;
  std::string names;
  for (const auto& [name, service] : services_) names += (names.empty() ? "" : ", ") + name;
  throw NotFoundError(str(name_, " has no method ", name_in_text(method),
                          "; its services are: ", names.empty() ? "none" : names));
}

Caller Dispatcher::admit(const MethodEntry& entry, const Peer& peer, const Claim& claim) const {
  if (peer.task && !claim.task.job.empty() && *peer.task != claim.task) {
    throw PermissionDeniedError(str("the caller at ", peer.address, " says that it is ",
                                    name_in_text(to_string(claim.task)),
                                    ", but its certificate is ", *peer.task, "'s"));
  }
  Caller caller;
  caller.task = peer.task ? *peer.task : claim.task;
  caller.incarnation = claim.incarnation;
  caller.generation = claim.generation;
  if (caller.task.job.empty()) {
    throw UnauthenticatedError(str("the caller at ", peer.address, " does not say who it is"));
  }
  const std::optional<Role> role = options_.role_of(caller.task);
  if (!role) {
    throw PermissionDeniedError(str(name_in_text(to_string(caller.task)), " at ", peer.address,
                                    " is no task of the cluster of ", name_));
  }
  caller.role = *role;
  if (!entry.spec.callers.contains(caller.role)) {
    throw PermissionDeniedError(str(caller.task, " at ", peer.address, " may not call ", entry.name,
                                    " of ", name_, ": its role is ", role_name(caller.role)));
  }
  check_fence(entry, caller);
  return caller;
}

void Dispatcher::check_fence(const MethodEntry& entry, const Caller& caller) const {
  if (!entry.spec.fenced) return;
  std::shared_ptr<const Fence> fence;
  {
    const std::lock_guard lock(mutex_);
    fence = fence_;
  }
  if (fence) fence->check(caller);
}

void Dispatcher::reserve(size_t bytes) {
  take(load_->bulk_bytes, bytes, options_.max_bulk_bytes, name_);
}

void Dispatcher::reserve_header(size_t bytes) {
  take(load_->header_bytes, bytes, options_.max_header_bytes, name_);
}

void Dispatcher::stop() {
  std::map<std::string, std::shared_ptr<Service>, std::less<>> services;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    stopped_ = true;
    services = services_;
  }
  for (const auto& [name, service] : services) service->stop();
}

}  // namespace cohort::internal::rpc
