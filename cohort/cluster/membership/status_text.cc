#include "cohort/cluster/membership/status_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cohort/cluster/membership/limits.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/rpc/text.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/core/utc_text.h"

namespace cohort::internal::membership {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::system_clock;

constexpr std::string_view kNothing = "-";
constexpr size_t kStateColumn = 1;
using Row = std::array<std::string, 7>;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// "0.4 s", "12 s", "5 min", "3 h", "2 days".
std::string age_text(Duration age) {
  const double value = seconds(age);
  const auto whole = [value](double unit) { return fixed_digits(std::floor(value / unit), 0); };
  if (value < 10) return fixed_digits(value, 1) + " s";
  if (value < 120) return whole(1) + " s";
  if (value < 120 * 60) return whole(60) + " min";
  if (value < 48 * 3600) return whole(3600) + " h";
  return whole(86400) + " days";
}

std::string ago(const std::optional<Duration>& age) {
  return age ? age_text(*age) + " ago" : std::string(kNothing);
}

// On one line.
std::string shown(std::string_view text) {
  std::string line = rpc::printable(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line.empty() ? std::string(kNothing) : line;
}

std::string figures_text(const Figures& figures) {
  std::string text;
  for (const auto& [name, value] : figures) {
    text += (text.empty() ? "" : ", ") + shown(name) + " " + general_digits(value, 6);
  }
  return text;
}

std::string failure_text(const View& view) {
  return record_error(rpc::decode_error(view.failure)).message;
}

std::string count_of(const View& view, TaskState state) {
  const auto count = std::count_if(view.members.begin(), view.members.end(),
                                   [&](const Member& member) { return member.state == state; });
  return count == 0 ? "" : str(", ", count, " ", state_name(state));
}

std::string summary(const ClusterStatus& status) {
  const View& view = status.view;
  std::string text = str(view.members.size(), view.members.size() == 1 ? " task" : " tasks");
  for (const TaskState state :
       {TaskState::kAlive, TaskState::kAwaited, TaskState::kLost, TaskState::kLeft}) {
    text += count_of(view, state);
  }
  text += view.generation == 0 ? ", not started" : str(", generation ", view.generation);
  text += str("; coordinated by ", shown(to_string(status.coordinator)), " at ",
              shown(status.address), "\n");
  if (!view.failure.empty()) text += str("failed: ", shown(failure_text(view)), "\n");
  return text;
}

Row row_of(const Member& member) {
  return {shown(to_string(member.task)),
          std::string(state_name(member.state)),
          ago(member.state_age),
          ago(member.silence),
          member.incarnation == 0 ? std::string(kNothing) : hex(member.incarnation),
          shown(member.address),
          figures_text(member.figures)};
}

std::string_view colour_of(std::string_view state) {
  if (state == state_name(TaskState::kAlive)) return "\x1b[32m";
  if (state == state_name(TaskState::kLost)) return "\x1b[31m";
  if (state == state_name(TaskState::kAwaited)) return "\x1b[33m";
  return "\x1b[2m";
}

std::string line_of(const Row& row, const std::array<size_t, 7>& widths, bool coloured) {
  std::string line;
  size_t blanks = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i].empty()) continue;
    line.append(blanks, ' ');
    if (coloured && i == kStateColumn) {
      line += str(colour_of(row[i]), row[i], "\x1b[0m");
    } else {
      line += row[i];
    }
    blanks = widths[i] - row[i].size() + 2;
  }
  return line + '\n';
}

std::string date_text(system_clock::time_point time) {
  return utc_text(std::chrono::floor<std::chrono::milliseconds>(time));
}

Json seconds_json(const std::optional<Duration>& age) { return age ? Json(seconds(*age)) : Json(); }

Json since_json(const ClusterStatus& status, const std::optional<Duration>& age) {
  if (!age) return {};
  return date_text(status.time - std::chrono::duration_cast<system_clock::duration>(*age));
}

Json incarnation_json(uint64_t incarnation) {
  return incarnation == 0 ? Json() : Json(hex(incarnation));
}

Json member_json(const ClusterStatus& status, const Member& member) {
  Json figures = Json::object();
  for (const auto& [name, value] : member.figures) figures[name] = value;
  return {{"task", to_string(member.task)},
          {"job", member.task.job},
          {"index", member.task.index},
          {"state", state_name(member.state)},
          {"since", since_json(status, member.state_age)},
          {"state_seconds", seconds_json(member.state_age)},
          {"heartbeat_seconds", seconds_json(member.silence)},
          {"incarnation", incarnation_json(member.incarnation)},
          {"address", member.address},
          {"observer", member.observer},
          {"figures", std::move(figures)}};
}

}  // namespace

bool is_well(const View& view) {
  return view.failure.empty() &&
         std::all_of(view.members.begin(), view.members.end(), [](const Member& member) {
           return member.state == TaskState::kAlive || member.state == TaskState::kLeft;
         });
}

std::string status_table(const ClusterStatus& status, const TableOptions& options) {
  std::vector<Row> rows = {
      {"task", "state", "since", "last heard", "incarnation", "address", "figures"}};
  for (const Member& member : status.view.members) rows.push_back(row_of(member));
  if (std::all_of(rows.begin() + 1, rows.end(),
                  [](const Row& row) { return row.back().empty(); })) {
    rows.front().back().clear();
  }
  std::array<size_t, 7> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = summary(status);
  for (const Row& row : rows) {
    text += line_of(row, widths, options.colours && &row != &rows.front());
  }
  return text;
}

std::string status_json(const ClusterStatus& status, int indent) {
  const View& view = status.view;
  Json tasks = Json::array();
  for (const Member& member : view.members) tasks.push_back(member_json(status, member));
  const Json json = {
      {"time", date_text(status.time)},
      {"coordinator",
       {{"task", to_string(status.coordinator)},
        {"address", status.address},
        {"incarnation", incarnation_json(view.service)}}},
      {"well", is_well(view)},
      {"generation", view.generation},
      {"failure", view.failure.empty() ? Json() : Json(failure_text(view))},
      {"stale_calls_refused", view.stale_refused ? Json(*view.stale_refused) : Json()},
      {"tasks", std::move(tasks)}};
  return json.dump(indent, ' ', true, Json::error_handler_t::replace) + '\n';
}

}  // namespace cohort::internal::membership
