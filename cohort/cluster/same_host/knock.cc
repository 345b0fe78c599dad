#include "cohort/cluster/same_host/knock.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/core/host/cores.h"
#include "cohort/core/host/host_identity.h"
#include "cohort/core/host/random_hex.h"

namespace cohort::internal::rpc {
namespace {

struct Knock {
  std::string identity = {};  // of the host
  uint64_t process = 0;
  std::string cores = {};  // encode_cores
};
void fields(auto& f, Knock& knock) {
  f(1, knock.identity);
  f(2, knock.process);
  f(3, knock.cores);
}

constexpr std::chrono::seconds kTicketLife{10};
constexpr size_t kTicketBytes = 16;
constexpr size_t kMostTickets = 1024;

constexpr MethodSpec kDoorMethods[] = {
    {.name = "knock", .callers = kEverybody, .fenced = false, .max_control_bytes = 1024}};

}  // namespace

Message knock() {
  static const std::string identity = host_identity();
  return {.control = encode_fields(Knock{.identity = identity,
                                         .process = static_cast<uint64_t>(::getpid()),
                                         .cores = encode_cores(own_cores())})};
}

void fields(auto& f, Door& door) {
  f(1, door.name);
  f(2, door.ticket);
  f(3, door.each_has_a_core);
}

Door decode_door(const Message& answer) {
  return decode_fields<Door>(answer.control, "the answer to a knock");
}

Doorman::Doorman(Options options) : options_(std::move(options)), identity_(host_identity()) {}

std::span<const MethodSpec> Doorman::methods() const { return kDoorMethods; }

void Doorman::handle(size_t, std::unique_ptr<Call> call) {
  const auto knock = decode_fields<Knock>(call->request().control, "a knock");
  const std::array<cpu_set_t, 2> cores{own_cores(), decode_cores(knock.cores)};
  const bool own_process = knock.process == static_cast<uint64_t>(::getpid());
  if (knock.identity != identity_ || (own_process && !options_.same_process)) {
    return call->reply({.control = ""});
  }
  Ticket ticket{random_hex(kTicketBytes),
                {.task = call->caller().task, .each_has_a_core = each_can_have_a_core(cores)},
                std::chrono::steady_clock::now()};
  const Door door{.name = options_.socket_name,
                  .ticket = ticket.text,
                  .each_has_a_core = ticket.guest.each_has_a_core};
  {
    const std::lock_guard lock(mutex_);
    if (tickets_.size() == kMostTickets) tickets_.pop_front();
    tickets_.push_back(std::move(ticket));
  }
  call->reply({.control = encode_fields(door)});
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
