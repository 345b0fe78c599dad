// Functions that other tasks call by name. What crosses the wire is the name and the values: code
// never does, for every task runs the same program and gives its functions the same names.
//
//   tf::distribute::NamedFunctions functions;
//   auto square = functions.add("square", [](const tf::Tensor& x) { return x * x; });
//   functions.serve(server);                            // this task answers calls
//   tf::Structure result = square.call(server, {"worker", 1}, tf::tuple(x), {.timeout = 10s});
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "cohort/cluster/server.h"
#include "cohort/core/export.h"
#include "cohort/core/program/task_id.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/structure_call.h"

namespace cohort::internal {
class NamedFunctionTable;
}

namespace cohort::distribute {

struct RemoteCallOptions {
  std::chrono::milliseconds timeout = std::chrono::minutes(1);  // for all of the call
};

// Thread safety: any thread, where the function is.
class COHORT_API NamedFunction {
 public:
  const std::string& name() const { return name_; }

  // Calls it here.
  Structure operator()(const Structure& arguments) const { return function_(arguments); }
  // Calls it in another task, or in this one: `arguments` is a tuple of what the function takes.
  // `server` is this task's. Errors: those of the function (the same class; its task is where it
  // ran), InvalidArgument (other arguments than it takes), NotFound (the task serves no function of
  // this name), DeadlineExceeded, Unavailable (the task is lost), Unimplemented (a sparse tensor).
  Structure call(const Server& server, const TaskId& task, const Structure& arguments,
                 const RemoteCallOptions& options = {}) const;

 private:
  friend class NamedFunctions;
  NamedFunction(std::string name, internal::StructureFunction<> function)
      : name_(std::move(name)), function_(std::move(function)) {}

  std::string name_;
  internal::StructureFunction<> function_;
};

// Thread safety: any thread.
class COHORT_API NamedFunctions {
 public:
  NamedFunctions();

  // `function` takes what a step takes (see Strategy::run): tensors, numbers, strings, structures;
  // and returns such, or nothing. Several calls may run it at one time.
  // Errors: InvalidArgument (not 1 to 256 bytes of UTF-8), AlreadyExists (a function of that name).
  template <class Fn>
  NamedFunction add(const std::string& name, Fn&& function) {
    return add_erased(name, internal::structure_function(
                                std::forward<Fn>(function),
                                {.function = "the named function", .input = "the call"}));
  }

  // Calls the function of this name here. Errors: NotFound, InvalidArgument (other arguments than
  // it takes), those of the function.
  Structure call_here(const std::string& name, const Structure& arguments) const;

  // Lets the server's task answer calls of these functions, also of those that are added later.
  // They run on threads of their own, for the server's task. Once for each server.
  // Errors: AlreadyExists (it serves named functions already).
  void serve(Server& server) const;

 private:
  NamedFunction add_erased(const std::string& name, internal::StructureFunction<> function);

  std::shared_ptr<internal::NamedFunctionTable> table_;
};

}  // namespace cohort::distribute
