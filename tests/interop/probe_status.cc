#include <cohort/cluster/membership/prometheus_text.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>

#include "probe.h"

namespace cohort::interop {
namespace {

namespace membership = internal::membership;

std::optional<membership::Duration> seconds(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return std::chrono::duration_cast<membership::Duration>(
      std::chrono::duration<double>(json.get<double>()));
}

membership::Member read_member(const Json& json) {
  membership::Member member{
      .task = {json.at("job"), json.at("index")},
      .state = json.at("alive") ? membership::TaskState::kAlive : membership::TaskState::kLost,
      .state_age = seconds(json.at("state_seconds")),
      .silence = seconds(json.at("silence_seconds"))};
  for (const auto& [name, value] : json.at("figures").items()) {
    member.figures[name] = std::strtod(value.get<std::string>().c_str(), nullptr);
  }
  return member;
}

}  // namespace

Json prometheus_text(const Json& request) {
  membership::View view;
  view.generation = request.at("generation");
  for (const Json& member : request.at("members")) view.members.push_back(read_member(member));
  if (!request.at("stale_refused").is_null()) view.stale_refused = request.at("stale_refused");
  return {{"text", membership::prometheus_text(view)}};
}

}  // namespace cohort::interop
