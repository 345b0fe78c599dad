// Tells random generators which replica draws, and under which strategy they are made.
#pragma once

namespace cohort::collective {
class SyncGroup;
}

namespace cohort::internal {

// To be called before a strategy is current anywhere. Thread safety: any thread, any number of
// times.
void tell_generators_of_replicas();

// The number by which random streams of the calling thread's task differ from those of other tasks:
// its index, if each task runs steps of its own; 0 in a group of several tasks, whose replicas all
// have ids of their own.
int task_of_streams(const collective::SyncGroup& group);

}  // namespace cohort::internal
