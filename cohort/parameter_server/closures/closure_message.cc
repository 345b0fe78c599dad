#include "cohort/parameter_server/closures/closure_message.h"

#include <string_view>

#include "cohort/core/bytes/fields.h"
#include "cohort/distribute/tasks/structure_message.h"

namespace cohort::internal {
namespace {

// A closure without its arguments, and their form.
struct ClosureFields {
  std::string_view request;
  std::string_view arguments;
};
void fields(auto& f, ClosureFields& closure) {
  f(1, closure.request);
  f(2, closure.arguments);
}

}  // namespace

void fields(auto& f, WorkerValue& value) {
  f(1, value.place);
  f(2, value.input);
}

void fields(auto& f, RunClosure& request) {
  f(1, request.function);
  f(2, request.id);
  f(3, request.forget_below);
  f(4, request.session);
  f(5, request.inputs);
  f(6, request.values);
  f(7, request.sequence);
  f(8, request.caches_reads);
}

void fields(auto& f, MakeInput& request) {
  f(1, request.function);
  f(2, request.input);
  f(3, request.session);
  f(4, request.kind, InputKind::kValue);
}

rpc::Message encode(const RunClosure& request) {
  rpc::Message message = to_message(request.arguments);
  const std::string alone = encode_fields(request);
  message.control = encode_fields(ClosureFields{.request = alone, .arguments = message.control});
  return message;
}

RunClosure decode_run_closure(const rpc::Message& message) {
  constexpr char kWhat[] = "a closure";
  const auto closure = decode_fields<ClosureFields>(message.control, kWhat);
  auto request = decode_fields<RunClosure>(closure.request, kWhat);
  request.arguments =
      to_structure({.control = std::string(closure.arguments), .bulk = message.bulk},
                   "the arguments of a closure");
  return request;
}

rpc::Message encode(const MakeInput& request) { return {.control = encode_fields(request)}; }
MakeInput decode_make_input(const rpc::Message& message) {
  return decode_fields<MakeInput>(message.control, "the making of an input");
}

}  // namespace cohort::internal
