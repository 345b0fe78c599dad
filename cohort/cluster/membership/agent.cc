#include "cohort/cluster/membership/agent.h"

#include <future>
#include <utility>

#include "cohort/cluster/membership/agent_core.h"
#include "cohort/cluster/rpc/text.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal::membership {
namespace {

// Beyond a call's own deadline, for a channel that breaks its word.
constexpr Duration kPatience = std::chrono::seconds(30);

std::string missing_of(const ViewPtr& view) {
  std::string text;
  if (!view) return "no view of it";
  for (const Member& member : view->members) {
    if (member.observer || member.state == TaskState::kAlive) continue;
    text += str(text.empty() ? "" : ", ", member.task, " (", rpc::printable(member.address),
                member.address.empty() ? "" : ", ", state_name(member.state), ")");
  }
  return text.empty() ? "nobody, but its generation is old" : text;
}

constexpr auto kHasStarted = [](const ViewPtr& view) { return view->generation > 0; };

// Waits for what `begin(done)` starts.
template <class Begin>
StoreReply wait_for(Duration timeout, Begin&& begin) {
  auto promise = std::make_shared<std::promise<StoreReply>>();
  std::future<StoreReply> reply = promise->get_future();
  begin([promise](std::exception_ptr error, const StoreReply& answer) {
    if (error) {
      promise->set_exception(error);
    } else {
      promise->set_value(answer);
    }
  });
  if (reply.wait_for(bounded_wait(timeout) + kPatience) != std::future_status::ready) {
    throw DeadlineExceededError("the channel to the coordination service never answered");
  }
  return reply.get();
}

StoreRequest request_for(AgentCore& core, const std::string& key, const StoreOptions& options) {
  check_name("a key", key, kMostKeyBytes);
  return {.key = key,
          .session = options.session,
          .generation = options.this_generation ? core.bound_generation() : 0};
}

}  // namespace

MembershipAgent::MembershipAgent(rpc::Clock& clock, std::shared_ptr<rpc::Channel> channel,
                                 AgentOptions options)
    : core_(std::make_shared<AgentCore>(clock, std::move(channel), std::move(options))) {}

MembershipAgent::~MembershipAgent() { core_->stop(); }

void MembershipAgent::start() { core_->start(); }

ViewPtr MembershipAgent::wait_for_start() { return core_->wait(std::nullopt, kHasStarted); }
ViewPtr MembershipAgent::wait_for_start(Duration timeout) {
  return core_->wait(timeout, kHasStarted);
}

ViewPtr MembershipAgent::wait_for_group(int64_t at_least, Duration timeout) {
  const ViewPtr group = core_->wait(timeout, [&](const ViewPtr& view) {
    return view->generation >= at_least && view->generation > 0 &&
           (core_->options().elastic || view->complete());
  });
  if (group) return group;
  throw DeadlineExceededError(str("the group has not been complete within ",
                                  std::chrono::duration<double>(timeout).count(),
                                  " s; missing: ", missing_of(view())));
}

ViewPtr MembershipAgent::view() const { return core_->view(); }
int64_t MembershipAgent::generation() const { return core_->generation(); }
std::function<Standing()> MembershipAgent::standing_source() const {
  return [weak = std::weak_ptr(core_)] {
    const auto core = weak.lock();
    return core ? core->standing() : Standing{.stage = Stage::kEnded};
  };
}
std::exception_ptr MembershipAgent::error() const { return core_->error(); }
void MembershipAgent::check(const rpc::Caller& caller) const { core_->check(caller); }
int64_t MembershipAgent::stale_refused() const { return core_->stale_refused(); }
const AgentOptions& MembershipAgent::options() const { return core_->options(); }
rpc::Clock& MembershipAgent::clock() const { return core_->clock(); }
bool MembershipAgent::in_callback() const { return core_->in_callback(); }

void MembershipAgent::set_figure(const std::string& name, double value) {
  core_->set_figure(name, value);
}

void MembershipAgent::drop_figure(const std::string& name) { core_->drop_figure(name); }

Figures MembershipAgent::figures() const { return core_->figures(); }

void MembershipAgent::report(const std::exception_ptr& error) {
  core_->report(error, std::nullopt, [](const rpc::CallResult&) {});
}

void MembershipAgent::report(const std::exception_ptr& error, Duration timeout) {
  wait_for(timeout, [&](Done done) {
    core_->report(error, timeout,
                  [done](const rpc::CallResult& result) { done(result.error, {}); });
  });
}

std::vector<std::string> MembershipAgent::declare(const std::vector<Section>& program,
                                                  Duration timeout) {
  const std::string control = DeclareRequest{.program = program}.encode();
  const auto reply = std::make_shared<std::string>();
  wait_for(timeout, [&](Done done) {
    core_->request(
        "declare", [control](const AgentCore::Attempt&) { return control; }, timeout,
        [reply, done](const rpc::CallResult& result) {
          *reply = result.reply.control;
          done(result.error, {});
        });
  });
  return DeclareReply::decode(*reply).warnings;
}

void MembershipAgent::leave(const std::string& where, Duration timeout) noexcept {
  try {
    wait_for(timeout, [&](Done done) { start_leave(where, timeout, [done] { done({}, {}); }); });
  } catch (...) {  // gone all the same
  }
}

void MembershipAgent::start_leave(const std::string& where, Duration timeout,
                                  std::function<void()> done) {
  core_->leave(where, timeout, std::move(done));
}

void MembershipAgent::stop() { core_->stop(); }

void MembershipAgent::start_barrier(const std::string& name, const BarrierOptions& options,
                                    Done done) {
  check_name("a barrier's name", name, kMostKeyBytes);
  BarrierRequest request{.name = name,
                         .tasks = options.tasks,
                         .generation = options.tasks.empty() ? core_->bound_generation() : 0};
  core_->request(
      "barrier",
      [request = std::move(request)](const AgentCore::Attempt& attempt) mutable {
        request.id = attempt.id;
        request.oldest = attempt.oldest;
        request.at_most = attempt.at_most;
        return request.encode();
      },
      options.timeout,
      [done = std::move(done)](const rpc::CallResult& result) { done(result.error, {}); });
}

void MembershipAgent::barrier(const std::string& name, const BarrierOptions& options) {
  wait_for(options.timeout, [&](Done done) { start_barrier(name, options, std::move(done)); });
}

void MembershipAgent::start_store(std::string_view method, StoreRequest request, Duration timeout,
                                  Done done) {
  core_->request(
      std::string(method),
      [waits = method == "get" && request.at_most != Duration::zero(),
       request = std::move(request)](const AgentCore::Attempt& attempt) mutable {
        request.id = attempt.id;
        request.oldest = attempt.oldest;
        if (waits) request.at_most = attempt.at_most;
        return request.encode();
      },
      timeout,
      [done = std::move(done)](const rpc::CallResult& result) {
        if (result.error) return done(result.error, {});
        try {
          done(nullptr, StoreReply::decode(result.reply.control));
        } catch (const Error&) {
          done(std::current_exception(), {});
        }
      });
}

std::string MembershipAgent::get(const std::string& key, Duration timeout) {
  StoreRequest request = request_for(*core_, key, {});
  request.at_most = timeout;
  StoreReply reply = wait_for(timeout, [&](Done done) {
    start_store("get", std::move(request), timeout, std::move(done));
  });
  if (reply.has_value) return std::move(reply.value);
  throw DeadlineExceededError(str("nobody has set key ", quoted(rpc::printable(key)), " within ",
                                  std::chrono::duration<double>(timeout).count(), " s"));
}

std::optional<std::string> MembershipAgent::find(const std::string& key) {
  const StoreOptions options;
  StoreReply reply = wait_for(options.timeout, [&](Done done) {
    start_store("get", request_for(*core_, key, options), options.timeout, std::move(done));
  });
  if (!reply.has_value) return std::nullopt;
  return std::move(reply.value);
}

void MembershipAgent::set(const std::string& key, const std::string& value,
                          const StoreOptions& options) {
  StoreRequest request = request_for(*core_, key, options);
  request.value = value;
  wait_for(options.timeout, [&](Done done) {
    start_store("set", std::move(request), options.timeout, std::move(done));
  });
}

int64_t MembershipAgent::add(const std::string& key, int64_t delta, const StoreOptions& options) {
  StoreRequest request = request_for(*core_, key, options);
  request.delta = delta;
  return wait_for(options.timeout,
                  [&](Done done) {
                    start_store("add", std::move(request), options.timeout, std::move(done));
                  })
      .number;
}

bool MembershipAgent::compare_and_set(const std::string& key,
                                      const std::optional<std::string>& expected,
                                      const std::string& value, const StoreOptions& options) {
  StoreRequest request = request_for(*core_, key, options);
  request.expected = expected;
  request.value = value;
  return wait_for(options.timeout,
                  [&](Done done) {
                    start_store("compare_and_set", std::move(request), options.timeout,
                                std::move(done));
                  })
      .done;
}

bool MembershipAgent::remove(const std::string& key, const StoreOptions& options) {
  return wait_for(options.timeout,
                  [&](Done done) {
                    start_store("remove", request_for(*core_, key, options), options.timeout,
                                std::move(done));
                  })
      .done;
}

std::vector<std::string> MembershipAgent::list(const std::string& prefix) {
  const StoreOptions options;
  std::vector<std::string> keys;
  for (bool more = true; more;) {
    StoreRequest request{.key = prefix, .after = keys.empty() ? "" : keys.back()};
    StoreReply reply = wait_for(options.timeout, [&](Done done) {
      start_store("list", std::move(request), options.timeout, std::move(done));
    });
    more = reply.more;
    keys.insert(keys.end(), std::make_move_iterator(reply.keys.begin()),
                std::make_move_iterator(reply.keys.end()));
  }
  return keys;
}

}  // namespace cohort::internal::membership
