#include "cohort/cluster/same_host/knock.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"
#include "cohort/core/host/cores.h"
#include "cohort/core/host/host_identity.h"
#include "cohort/core/host/random_hex.h"

namespace cohort::internal::rpc {
namespace {

enum KnockField : uint32_t { kIdentity = 1, kProcess = 2, kCores = 3 };
enum DoorField : uint32_t { kDoorName = 1, kDoorTicket = 2, kEachHasACore = 3 };

constexpr std::chrono::seconds kTicketLife{10};
constexpr size_t kTicketBytes = 16;
constexpr size_t kMostTickets = 1024;

constexpr MethodSpec kDoorMethods[] = {
    {.name = "knock", .callers = kEverybody, .fenced = false, .max_control_bytes = 1024}};

}  // namespace

Message knock() {
  static const std::string identity = host_identity();
  WireWriter out;
  out.bytes(kIdentity, identity)
      .varint(kProcess, static_cast<uint64_t>(::getpid()))
      .bytes(kCores, encode_cores(own_cores()));
  return {.control = out.str()};
}

Door decode_door(const Message& answer) {
  Door door;
  WireReader in(answer.control, "the answer to a knock");
  while (in.next()) {
    if (in.field() == kDoorName) door.name = in.bytes();
    if (in.field() == kDoorTicket) door.ticket = in.bytes();
    if (in.field() == kEachHasACore) door.each_has_a_core = in.varint() != 0;
  }
  return door;
}

Doorman::Doorman(Options options) : options_(std::move(options)), identity_(host_identity()) {}

std::span<const MethodSpec> Doorman::methods() const { return kDoorMethods; }

void Doorman::handle(size_t, std::unique_ptr<Call> call) {
  std::string identity;
  uint64_t process = 0;
  std::array<cpu_set_t, 2> cores{own_cores(), decode_cores({})};
  WireReader in(call->request().control, "a knock");
  while (in.next()) {
    if (in.field() == kIdentity) identity = in.bytes();
    if (in.field() == kProcess) process = in.varint();
    if (in.field() == kCores) cores[1] = decode_cores(in.bytes());
  }
  const bool own_process = process == static_cast<uint64_t>(::getpid());
  if (identity != identity_ || (own_process && !options_.same_process)) {
    return call->reply({.control = ""});
  }
  Ticket ticket{random_hex(kTicketBytes),
                {.task = call->caller().task, .each_has_a_core = each_can_have_a_core(cores)},
                std::chrono::steady_clock::now()};
  WireWriter out;
  out.bytes(kDoorName, options_.socket_name)
      .bytes(kDoorTicket, ticket.text)
      .varint(kEachHasACore, ticket.guest.each_has_a_core ? 1 : 0);
  {
    const std::lock_guard lock(mutex_);
    if (tickets_.size() == kMostTickets) tickets_.pop_front();
    tickets_.push_back(std::move(ticket));
  }
  call->reply({.control = out.str()});
}

std::optional<Guest> Doorman::admit(const std::string& ticket) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(tickets_.begin(), tickets_.end(),
                                  [&](const Ticket& one) { return one.text == ticket; });
  if (found == tickets_.end()) return std::nullopt;
  const Ticket used = std::move(*found);
  tickets_.erase(found);
  if (std::chrono::steady_clock::now() - used.given > kTicketLife) return std::nullopt;
  return used.guest;
}

}  // namespace cohort::internal::rpc
