#include "cohort/parameter_server/closures/closure_message.h"

#include "cohort/core/bytes/wire.h"
#include "cohort/distribute/tasks/structure_message.h"

namespace cohort::internal {
namespace {

enum ClosureField : uint32_t {
  kFunction = 1,
  kClosureId,
  kClosuresEndedBelow,
  kInput,
  kArguments,
  kSession,
  kValuePlace,
  kValueInput,
  kKind,
  kSequence,
  kCachesReads
};

}  // namespace

rpc::Message encode(const RunClosure& request) {
  rpc::Message message = to_message(request.arguments);
  WireWriter out;
  out.bytes(kFunction, request.function)
      .varint(kClosureId, request.id)
      .varint(kClosuresEndedBelow, request.forget_below);
  for (const uint64_t input : request.inputs) out.varint(kInput, input);
  out.bytes(kArguments, message.control)
      .varint(kSession, request.session)
      .varint(kSequence, request.sequence);
  for (const WorkerValue& value : request.values) {
    out.varint(kValuePlace, value.place).varint(kValueInput, value.input);
  }
  if (request.caches_reads) out.varint(kCachesReads, 1);
  message.control = out.str();
  return message;
}

RunClosure decode_run_closure(const rpc::Message& message) {
  RunClosure request;
  rpc::Message arguments{.control = "", .bulk = message.bulk};
  WireReader in(message.control, "a closure");
  while (in.next()) {
    switch (in.field()) {
      case kFunction:
        request.function = in.bytes();
        break;
      case kClosureId:
        request.id = in.varint();
        break;
      case kClosuresEndedBelow:
        request.forget_below = in.varint();
        break;
      case kInput:
        request.inputs.push_back(in.varint());
        break;
      case kArguments:
        arguments.control = in.bytes();
        break;
      case kSession:
        request.session = in.varint();
        break;
      case kSequence:
        request.sequence = in.varint();
        break;
      case kCachesReads:
        request.caches_reads = in.varint() != 0;
        break;
      case kValuePlace:
        request.values.push_back({.place = in.varint()});
        break;
      case kValueInput:
        if (!request.values.empty()) request.values.back().input = in.varint();
        break;
    }
  }
  request.arguments = to_structure(arguments, "the arguments of a closure");
  return request;
}

rpc::Message encode(const MakeInput& request) {
  WireWriter out;
  out.bytes(kFunction, request.function)
      .varint(kInput, request.input)
      .varint(kSession, request.session)
      .varint(kKind, static_cast<uint64_t>(request.kind));
  return {.control = out.str()};
}

MakeInput decode_make_input(const rpc::Message& message) {
  MakeInput request;
  WireReader in(message.control, "the making of an input");
  while (in.next()) {
    if (in.field() == kFunction) request.function = in.bytes();
    if (in.field() == kInput) request.input = in.varint();
    if (in.field() == kSession) request.session = in.varint();
    if (in.field() == kKind && in.varint() != 0) request.kind = InputKind::kValue;
  }
  return request;
}

}  // namespace cohort::internal
