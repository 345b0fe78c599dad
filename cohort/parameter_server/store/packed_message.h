// Messages of any number of tensors and fields, within what one call may have
// (cluster/rpc/frame.h): a push is applied once or not at all, and what is read together is of one
// state, so that a step on many variables is one call to each ps task.
//
// A message that is too long for that is sent with its fields, and the sizes of its tensors, in
// front of the bulk, and with neighbouring small tensors joined to pieces of up to 2 MiB.
#pragma once

#include <optional>

#include "cohort/cluster/rpc/message.h"

namespace cohort::internal {

// How many bytes of fields a method must allow as bulk if it is sent packed requests without
// tensors.
inline constexpr size_t kMostPackedFields = size_t{64} << 20;

// The message itself where it is short enough, as most are.
rpc::Message packed(rpc::Message message);

// What packed() was given, and fields that were added to its result; nullopt: `message` is not
// packed. Its tensors lie in the memory of `message`.
// Errors: DataLoss (it says that it is packed, but is not).
std::optional<rpc::Message> unpacked(const rpc::Message& message);

}  // namespace cohort::internal
