#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "cohort/cluster/membership/status_text.h"
#include "cohort/cluster/security/make_certificates.h"
#include "cohort/cluster/security/security.h"
#include "cohort/cluster/status_client.h"
#include "tools/cluster_commands.h"
#include "tools/exit_codes.h"
#include "tools/printable.h"

namespace cohort::tools {
namespace {

namespace membership = internal::membership;
using internal::security::Security;

constexpr char kClear[] = "\x1b[2J";
constexpr char kHome[] = "\x1b[H";
constexpr char kClearRestOfLine[] = "\x1b[K";
constexpr char kClearBelow[] = "\x1b[J";

std::shared_ptr<const Security> security_of(const StatusOptions& options) {
  if (options.certificates.empty()) {
    return Security::load(distribute::Credentials::from_environment(), std::nullopt);
  }
  const TaskId person{"operator", 0};
  return Security::load(internal::security::credentials_in(options.certificates, person), person);
}

// 1 is for clusters that are not well, so errors have other codes.
int exit_code_of(const Error& error) {
  switch (error.code()) {
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
    case Code::kNotFound:
    case Code::kPermissionDenied:
      return kExitUsage;
    default:
      return kExitUnreachable;
  }
}

// What is shown at one time, and the exit code that goes with it.
struct Shown {
  std::string text;
  std::string error;
  int exit_code = kExitOk;
};

Shown look(const StatusOptions& options, internal::StatusClient& client) {
  try {
    const membership::ClusterStatus status = client.status();
    return {.text = options.json ? membership::status_json(status, options.watch ? -1 : 2)
                                 : membership::status_table(status, {.colours = options.terminal}),
            .error = "",
            .exit_code = membership::is_well(status.view) ? kExitOk : kExitFailed};
  } catch (const Error& error) {
    return {.text = "",
            .error = "cohort: " + printable(error.what()) + '\n',
            .exit_code = exit_code_of(error)};
  }
}

// Over what was drawn before: without clearing it first, which would flicker.
std::string drawn_over(const std::string& text, bool first) {
  std::string drawn = first ? std::string(kClear) + kHome : kHome;
  for (const char c : text) {
    if (c == '\n') drawn += kClearRestOfLine;
    drawn += c;
  }
  return drawn + kClearBelow;
}

int watch(const StatusOptions& options, internal::StatusClient& client, std::ostream& out,
          std::ostream& err) {
  const bool draws = options.terminal && !options.json;
  auto next = std::chrono::steady_clock::now();
  for (int64_t i = 1;; ++i) {
    const Shown shown = look(options, client);
    if (draws) {
      out << drawn_over(shown.text + shown.error, i == 1);
    } else {
      // Tables are told apart by an empty line.
      out << (i > 1 && !options.json && !shown.text.empty() ? "\n" : "") << shown.text;
      err << shown.error << std::flush;
    }
    out.flush();
    // A wrong address or certificate stays wrong; a cluster that is away may come back.
    if (i == options.times || shown.exit_code == kExitUsage || !out) return shown.exit_code;
    next = std::max(next + options.interval, std::chrono::steady_clock::now());
    std::this_thread::sleep_until(next);
  }
}

}  // namespace

int show_cluster_status(const StatusOptions& options, std::ostream& out, std::ostream& err) {
  std::optional<internal::StatusClient> client;
  try {
    const std::chrono::duration<double> timeout(options.timeout_seconds);
    client.emplace(options.address, security_of(options),
                   std::chrono::duration_cast<std::chrono::nanoseconds>(timeout));
  } catch (const Error& error) {
    err << "cohort: " << printable(error.what()) << '\n';
    return kExitUsage;
  }
  if (options.watch) return watch(options, *client, out, err);
  const Shown shown = look(options, *client);
  out << shown.text;
  err << shown.error;
  return shown.exit_code;
}

}  // namespace cohort::tools
