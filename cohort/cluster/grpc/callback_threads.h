// gRPC's threads that run callbacks.
#pragma once

namespace cohort::internal::rpc {

// Keeps gRPC's callback threads until the process ends. gRPC 1.51 ends them with the last channel.
// If a callback drops that channel (a call that outlived its channel's owner), a thread waits for
// itself and the process aborts.
void hold_callback_threads();

}  // namespace cohort::internal::rpc
