#include "cohort/distribute/tasks/named_functions.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/service.h"
#include "cohort/cluster/rpc/text.h"
#include "cohort/cluster/server_core.h"
#include "cohort/core/bytes/fields.h"
#include "cohort/core/caught_error.h"
#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/core/program/task.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/bounded_wait.h"
#include "cohort/core/threads/thread_pool.h"
#include "cohort/distribute/tasks/structure_message.h"

namespace cohort::internal {
namespace {

constexpr size_t kLongestName = 256;
constexpr size_t kMostBulkBytes = size_t{2} << 30;

// A call: the name, and the form of its arguments (structure_message.h).
struct CallFields {
  std::string_view name;
  std::string_view arguments;
};
void fields(auto& f, CallFields& call) {
  f(1, call.name);
  f(2, call.arguments);
}

}  // namespace

// The functions of a program, by name. Thread safety: any thread.
class NamedFunctionTable {
 public:
  void add(const std::string& name, StructureFunction<> function) {
    const std::lock_guard lock(mutex_);
    if (functions_.emplace(name, std::move(function)).second) return;
    throw AlreadyExistsError(str("there is a function ", quoted(name), " already"));
  }

  StructureFunction<> find(std::string_view name, std::string_view self) const {
    const std::lock_guard lock(mutex_);
    const auto found = functions_.find(name);
    if (found != functions_.end()) return found->second;
    std::string known;
    for (const auto& [other, function] : functions_) known.append(" ").append(quoted(other));
    throw NotFoundError(str(self, " serves no function ", quoted(name),
                            "; it serves:", known.empty() ? " none" : known,
                            ". Every task must add the same functions, before it serves them"));
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, StructureFunction<>, std::less<>> functions_;  // guarded by mutex_
};

namespace {

// Runs the functions for other tasks.
class FunctionService : public rpc::Service {
 public:
  FunctionService(std::shared_ptr<NamedFunctionTable> table, TaskId self)
      : table_(std::move(table)), self_(std::move(self)) {}

  std::string_view name() const override { return "functions"; }
  std::span<const rpc::MethodSpec> methods() const override { return kMethods; }

  void handle(size_t, std::unique_ptr<rpc::Call> call) override {
    const ScopedTask as_this_server(Task::named(self_.job, self_.index));
    pool_.schedule(
        [table = table_, self = self_, call = std::shared_ptr<rpc::Call>(std::move(call))] {
          run(*table, self, *call);
        });
  }

 private:
  static constexpr rpc::MethodSpec kMethods[] = {
      {.name = "call",
       .callers = rpc::Role::kCoordinator | rpc::Role::kWorker,
       .max_bulk_bytes = kMostBulkBytes},
  };
  // Functions may wait, so there are more threads than cores.
  static constexpr int kLeastThreads = 8;

  static void run(const NamedFunctionTable& table, const TaskId& self, rpc::Call& call) {
    try {
      call.reply(answer(table, self, call.request()));
    } catch (...) {
      const std::exception_ptr caught = std::current_exception();
      const ErrorRecord error = record_error(caught);
      call.fail(
          make_error(error.code, error.message, error.task.empty() ? to_string(self) : error.task));
      if (!caught) throw;  // pthread_exit: the thread goes on ending
    }
  }

  static rpc::Message answer(const NamedFunctionTable& table, const TaskId& self,
                             const rpc::Message& request) {
    const auto in = decode_fields<CallFields>(request.control, "a call of a named function");
    const std::string name(in.name);
    const StructureFunction<> function = table.find(name, to_string(self));
    const rpc::Message arguments{.control = std::string(in.arguments), .bulk = request.bulk};
    const Structure given = to_structure(arguments, str("the arguments of ", quoted(name)));
    return with_typed_errors(name.c_str(), [&] { return to_message(function(given)); });
  }

  const std::shared_ptr<NamedFunctionTable> table_;
  const TaskId self_;
  ThreadPool pool_{"functions", std::max(kLeastThreads, 2 * num_usable_cores())};
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::distribute {

using internal::quoted;
using internal::str;

NamedFunctions::NamedFunctions() : table_(std::make_shared<internal::NamedFunctionTable>()) {}

NamedFunction NamedFunctions::add_erased(const std::string& name,
                                         internal::StructureFunction<> function) {
  if (name.empty() || name.size() > internal::kLongestName || !internal::rpc::is_utf8(name)) {
    throw InvalidArgumentError(str("a function's name has 1 to ", internal::kLongestName,
                                   " bytes of UTF-8, but this is ", quoted(name)));
  }
  table_->add(name, function);
  return NamedFunction(name, std::move(function));
}

Structure NamedFunctions::call_here(const std::string& name, const Structure& arguments) const {
  return table_->find(name, internal::Task::current().to_string())(arguments);
}

void NamedFunctions::serve(Server& server) const {
  server.core().add(std::make_shared<internal::FunctionService>(table_, server.task()));
}

Structure NamedFunction::call(const Server& server, const TaskId& task, const Structure& arguments,
                              const RemoteCallOptions& options) const {
  internal::rpc::Message request = internal::to_message(arguments);
  request.control =
      internal::encode_fields(internal::CallFields{.name = name_, .arguments = request.control});
  const internal::rpc::Message reply =
      server.core().channel(task)->call("functions/call", std::move(request),
                                        {.timeout = internal::bounded_wait(options.timeout),
                                         .max_reply_bytes = internal::kMostBulkBytes});
  return internal::to_structure(reply, str("what ", quoted(name_), " returned in ", task));
}

}  // namespace cohort::distribute
