// `cohort launch ... -- PROGRAM ARGUMENT...`: runs a job's tasks as processes of this machine.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "cohort/cluster/launch/job_plan.h"

namespace cohort::tools {

struct LaunchCommandOptions {
  internal::JobOptions job;
  std::vector<std::string> command;  // the program and its arguments
  int restarts = 0;
  bool restart_each = false;
  double grace_seconds = 30;
  // Tasks prove to each other who they are by certificates. Empty: they are made for this run, and are in
  // this process's memory alone; else they are in this directory, or are made there.
  std::string certificates = "";
  bool tls = true;
  bool dry_run = false;  // says what it would start
};

// Returns the program's exit code: see LaunchResult.
// Errors: InvalidArgument, NotFound and PermissionDenied (the program), ResourceExhausted.
int launch_job(const LaunchCommandOptions& options, std::ostream& out);

}  // namespace cohort::tools
