#include "cohort/cluster/same_host/handshake.h"

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
void fields(auto& f, Knock& handshake) {
  f(1, handshake.identity);
  f(2, handshake.process);
  f(3, handshake.cores);
}

constexpr std::chrono::seconds kTicketLife{10};
constexpr size_t kTicketBytes = 16;
constexpr size_t kMostTickets = 1024;

constexpr MethodSpec kHandshakeMethods[] = {
    {.name = "handshake", .callers = kEverybody, .fenced = false, .max_control_bytes = 1024}};

}  // namespace

Message handshake() {
  static const std::string identity = host_identity();
  return {.control = encode_fields(Knock{.identity = identity,
                                         .process = static_cast<uint64_t>(::getpid()),
                                         .cores = encode_cores(own_cores())})};
}

void fields(auto& f, HandshakeAnswer& offer) {
  f(1, offer.name);
  f(2, offer.ticket);
  f(3, offer.each_has_a_core);
}

HandshakeAnswer decode_handshake(const Message& answer) {
  return decode_fields<HandshakeAnswer>(answer.control, "the answer to a handshake");
}

HandshakeService::HandshakeService(Options options)
    : options_(std::move(options)), identity_(host_identity()) {}

std::span<const MethodSpec> HandshakeService::methods() const { return kHandshakeMethods; }

void HandshakeService::handle(size_t, std::unique_ptr<Call> call) {
  const auto handshake = decode_fields<Knock>(call->request().control, "a handshake");
  const std::array<cpu_set_t, 2> cores{own_cores(), decode_cores(handshake.cores)};
  const bool own_process = handshake.process == static_cast<uint64_t>(::getpid());
  if (handshake.identity != identity_ || (own_process && !options_.same_process)) {
    return call->reply({.control = ""});
  }
  Ticket ticket{random_hex(kTicketBytes),
                {.task = call->caller().task, .each_has_a_core = each_can_have_a_core(cores)},
                std::chrono::steady_clock::now()};
  const HandshakeAnswer offer{.name = options_.socket_name,
                              .ticket = ticket.text,
                              .each_has_a_core = ticket.peer.each_has_a_core};
  {
    const std::lock_guard lock(mutex_);
    if (tickets_.size() == kMostTickets) tickets_.pop_front();
    tickets_.push_back(std::move(ticket));
  }
  call->reply({.control = encode_fields(offer)});
}

std::optional<AdmittedPeer> HandshakeService::admit(const std::string& ticket) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(tickets_.begin(), tickets_.end(),
                                  [&](const Ticket& one) { return one.text == ticket; });
  if (found == tickets_.end()) return std::nullopt;
  const Ticket used = std::move(*found);
  tickets_.erase(found);
  if (std::chrono::steady_clock::now() - used.given > kTicketLife) return std::nullopt;
  return used.peer;
}

}  // namespace cohort::internal::rpc
