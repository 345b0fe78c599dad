// Calls made of any bytes, against a server's dispatcher without sockets: each is answered exactly
// once, with an error of the allowed classes or with what the service gives; a service is called
// only by who may call it, with what it allows.
//
// Input: a byte that chooses the method, one that chooses what the transport knows of the caller,
// one that gives the size of the pieces, then the request's bytes.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "cohort/cluster/rpc/dispatcher.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"

namespace {

namespace rpc = cohort::internal::rpc;
using cohort::Code;
using cohort::TaskId;

constexpr size_t kMostBulk = 4096;
constexpr size_t kMostControl = 256;

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "fuzz_rpc_dispatch: broken property: " << property << '\n';
  std::abort();
}

class Checked : public rpc::Service {
 public:
  std::string_view name() const override { return "checked"; }
  std::span<const rpc::MethodSpec> methods() const override { return kMethods; }

  void handle(size_t method, std::unique_ptr<rpc::Call> call) override {
    require(method < std::size(kMethods), "a method that there is");
    const rpc::MethodSpec& spec = kMethods[method];
    require(spec.callers.contains(call->caller().role), "a caller that may call");
    require(!spec.fenced || call->caller().generation == 1, "no caller of another generation");
    require(call->request().control.size() <= spec.max_control_bytes, "few control bytes");
    require(call->request().bulk_bytes() <= spec.max_bulk_bytes, "few bulk bytes");
    call->reply(call->request());
  }

 private:
  static constexpr rpc::MethodSpec kMethods[] = {
      {.name = "look", .callers = rpc::kEverybody, .fenced = false},
      {.name = "write",
       .callers = rpc::Role::kWorker | rpc::Role::kCoordinator,
       .max_bulk_bytes = kMostBulk,
       .max_control_bytes = kMostControl},
      {.name = "stop", .callers = rpc::Role::kCoordinator},
  };
};

class FirstGeneration : public rpc::Fence {
 public:
  void check(const rpc::Caller& caller) const override {
    if (caller.generation != 1) throw cohort::AbortedError("another generation");
  }
};

std::optional<rpc::Role> role_of(const TaskId& task) {
  if (task.job == "worker") return rpc::Role::kWorker;
  if (task.job == "chief") return rpc::Role::kCoordinator;
  if (task.job == "operator") return rpc::Role::kOperator;
  return std::nullopt;
}

rpc::Dispatcher& dispatcher() {
  static auto* const made = [] {
    auto* dispatcher = new rpc::Dispatcher({.self = {"ps", 0}, .role_of = role_of});
    dispatcher->add(std::make_shared<Checked>());
    dispatcher->set_fence(std::make_shared<FirstGeneration>());
    return dispatcher;
  }();
  return *made;
}

bool is_allowed(Code code) {
  switch (code) {
    case Code::kDataLoss:
    case Code::kResourceExhausted:
    case Code::kPermissionDenied:
    case Code::kUnauthenticated:
    case Code::kNotFound:
    case Code::kAborted:
    case Code::kInvalidArgument:
      return true;
    default:
      return false;
  }
}

void check_answer(rpc::MessageWriter writer) {
  rpc::MessageReader reader("answer", [](const rpc::Header&) {
    return rpc::MessageReader::Limits{.bulk_bytes = kMostBulk};
  });
  for (; !writer.piece().empty(); writer.advance()) {
    for (const rpc::Bytes& slice : writer.piece()) reader.append({slice.data, slice.size});
  }
  reader.expect_complete();
  if (reader.header().error.empty()) return;
  const cohort::internal::ErrorRecord record =
      cohort::internal::record_error(rpc::decode_error(reader.header().error));
  require(is_allowed(record.code), "an error of the allowed classes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr std::string_view kMethods[] = {"checked/look", "checked/write", "checked/stop",
                                                  "checked/none", ""};
  if (size < 3) return 0;
  const std::string_view method = kMethods[data[0] % std::size(kMethods)];
  rpc::Peer peer{.address = "fuzzer"};
  if (data[1] % 3 == 1) peer.task = TaskId{"worker", 1};
  if (data[1] % 3 == 2) peer.task = TaskId{"chief", 0};
  const size_t piece = 1 + data[2];
  std::string_view bytes(reinterpret_cast<const char*>(data) + 3, size - 3);

  int answers = 0;
  {
    const auto session =
        dispatcher().begin(method, peer, std::chrono::steady_clock::now() + std::chrono::hours(1),
                           [&](rpc::MessageWriter writer) {
                             ++answers;
                             check_answer(std::move(writer));
                           });
    while (!bytes.empty()) {
      session->append(bytes.substr(0, piece));
      bytes.remove_prefix(std::min(piece, bytes.size()));
    }
    session->end_of_request();
    require(!session->cancel(), "nothing is left to cancel");
  }
  require(answers == 1, "exactly one answer");
  require(dispatcher().calls_under_way() == 0, "no call is left");
  return 0;
}
