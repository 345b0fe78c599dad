// Finds a task's part in a cluster that trains together: whether it is the chief, which task leads,
// and a worker's number. The rules are TensorFlow's (its multi_worker_util).
//
//   const train::ClusterSpec spec({{"chief", {a}}, {"worker", {b, c}}});
//   worker_count(spec, "worker");          // 3: the chief trains along
//   id_in_cluster(spec, {"worker", 1});    // 2
//   is_chief(spec, {"chief", 0});          // true
//
// Errors of all: InvalidArgument, as validate_cluster_spec says. An evaluator need not be in the
// spec: it is a cluster of its own.
#pragma once

#include <optional>
#include <string>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal {

// Jobs are chief, worker, ps and evaluator, at most one task in chief and in evaluator; `self` has
// one of these jobs and is in the spec.
void validate_cluster_spec(const train::ClusterSpec& spec, const TaskId& self);

// Tasks of a job, 0 where there is none.
int task_count(const train::ClusterSpec& spec, const std::string& job);

// The task that writes checkpoints and summaries: the chief, else worker 0. An evaluator is its
// own.
bool is_chief(const train::ClusterSpec& spec, const TaskId& self);

// The task whose values all others start from: "/job:chief/replica:0/task:0", or worker 0's where
// there is no chief. "" for an evaluator and for a program without a cluster.
std::string collective_leader(const train::ClusterSpec& spec, const TaskId& self);

// The task that holds the coordination service: the chief, else worker 0; nothing without either.
std::optional<TaskId> coordination_leader(const train::ClusterSpec& spec);

// How many tasks train together: chief and workers; of an evaluator, evaluators.
// Errors: InvalidArgument (a ps does not train).
int worker_count(const train::ClusterSpec& spec, const std::string& job);

// This task's number among those: the chief's is 0, workers follow.
// Errors: InvalidArgument (a ps has none).
int id_in_cluster(const train::ClusterSpec& spec, const TaskId& self);

}  // namespace cohort::internal
