// gRPC's threads that run callbacks.
#pragma once

namespace cohort::internal::rpc {

// Keeps them until the process ends. gRPC 1.51 ends them with the last channel; where a callback
// drops that one (a call that outlived its channel's owner), a thread waits for itself and the
// process aborts.
void hold_callback_threads();

}  // namespace cohort::internal::rpc
