#include "cohort/cluster/membership/prometheus_text.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/text.h"

namespace cohort::internal::membership {
namespace {

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};  // the shortest exact one
}

std::string label(std::string_view name, std::string_view value) {
  std::string text = str(name, "=\"");
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text + '"';
}

std::string labels_of(const TaskId& task) {
  return label("job", task.job) + ',' + label("index", decimal_digits(task.index));
}

std::string head(std::string_view name, std::string_view type, std::string_view help) {
  return str("# HELP ", name, ' ', help, "\n# TYPE ", name, ' ', type, '\n');
}

// A metric without labels.
std::string single(std::string_view name, std::string_view type, std::string_view help,
                   int64_t value) {
  return str(head(name, type, help), name, ' ', value, '\n');
}

// A gauge with a value for each task that has one.
std::string of_tasks(const View& view, std::string_view name, std::string_view help,
                     FunctionRef<std::optional<double>(const Member&)> value_of) {
  std::string lines;
  for (const Member& member : view.members) {
    const std::optional<double> value = value_of(member);
    if (value) lines += str(name, '{', labels_of(member.task), "} ", number_text(*value), '\n');
  }
  return lines.empty() ? "" : head(name, "gauge", help) + lines;
}

std::string lines_of_figures(const View& view) {
  constexpr std::string_view kName = "cohort_task_figure";
  std::string lines;
  for (const Member& member : view.members) {
    if (member.state != TaskState::kAlive)
      continue;  // nobody makes so many steps a second any more
    for (const auto& [name, value] : member.figures) {
      lines += str(kName, '{', labels_of(member.task), ',', label("name", name), "} ",
                   number_text(value), '\n');
    }
  }
  if (lines.empty()) return "";
  return head(kName, "gauge", "What the task says of itself, by name.") + lines;
}

std::optional<double> seconds_of(const std::optional<Duration>& age) {
  if (!age) return std::nullopt;
  return std::chrono::duration<double>(*age).count();
}

}  // namespace

std::string prometheus_text(const View& view) {
  std::string text = single(
      "cohort_cluster_generation", "gauge",
      "Raised by each task that is lost, leaves or comes; 0 before the start.", view.generation);
  text += single("cohort_cluster_failed", "gauge", "Whether the cluster has ended with an error.",
                 view.failure.empty() ? 0 : 1);
  text += of_tasks(view, "cohort_task_up", "Whether the task is alive.", [](const Member& member) {
    return std::optional<double>(member.state == TaskState::kAlive ? 1 : 0);
  });
  text += of_tasks(view, "cohort_task_incarnation_seconds",
                   "How long the task has been alive, or awaited, lost or gone.",
                   [](const Member& member) { return seconds_of(member.state_age); });
  text += of_tasks(view, "cohort_task_heartbeat_age_seconds",
                   "How long ago the task was last heard of.",
                   [](const Member& member) { return seconds_of(member.silence); });
  text += lines_of_figures(view);
  if (view.stale_refused) {
    text += single("cohort_stale_calls_refused_total", "counter",
                   "Calls of processes that are of the cluster no more, which were refused.",
                   *view.stale_refused);
  }
  return text;
}

std::string prometheus_text(const std::vector<monitoring::Sample>& refused_connections) {
  constexpr std::string_view kName = "cohort_refused_connections_total";
  std::string lines;
  for (const monitoring::Sample& sample : refused_connections) {
    lines += str(kName, '{', label("reason", sample.labels.at(0)), "} ", sample.value, '\n');
  }
  if (lines.empty()) return "";
  return head(kName, "counter", "Connections that this task's process has refused, by reason.") +
         lines;
}

std::string prometheus_text(const std::vector<monitoring::Timing>& timings) {
  if (timings.empty()) return "";
  constexpr std::string_view kName = "cohort_duration_seconds";
  std::string text = head(kName, "histogram", "How long what this task does takes, by name.");
  for (const monitoring::Timing& timing : timings) {
    const std::string name = label("name", timing.name);
    int64_t count = 0;
    for (size_t i = 0; i < timing.intervals.size(); ++i) {
      const std::string bound = i < timing.kBounds.size() ? number_text(timing.kBounds[i]) : "+Inf";
      count += timing.intervals[i];
      text += str(kName, "_bucket{", name, ',', label("le", bound), "} ", count, '\n');
    }
    text += str(kName, "_sum{", name, "} ", number_text(timing.seconds), '\n');
    text += str(kName, "_count{", name, "} ", timing.count, '\n');
  }
  return text;
}

}  // namespace cohort::internal::membership
