// A Structure as a message between tasks: its form and its tensors' headers as fields, the values
// as bulk bytes that are neither copied when sent nor, where they lie well, when received.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/rpc/message.h"
#include "cohort/core/structure/structure.h"

namespace cohort::internal {

// Errors: InvalidArgument (an undefined tensor), Unimplemented (a dtype or layout that has no form
// as plain bytes); the text begins with `what`.
void check_sendable(const Leaf& leaf, const std::string& what);

// Tensors of other devices are copied to the CPU. Errors: those of check_sendable; names the leaf.
rpc::Message to_message(const Structure& structure);

// The structure as it is now. Tensors whose memory belongs to somebody else, who may write to it
// before they are sent, are copied to the CPU, without what tapes have recorded of them. Others,
// such as temporaries, are the same tensors.
Structure unshared(Structure structure);

// Errors: DataLoss (these are not the fields of a structure), InvalidArgument (a tensor's bytes are
// not as many as its header says; too deep); the text begins with `what`.
Structure to_structure(const rpc::Message& message, std::string_view what);

// The message of a tuple of tensors, and its tensors again: without structures in between, for what
// is sent at each step. `form` is the control part. Errors: the same; also InvalidArgument (it is
// the form of something else).
rpc::Message to_message(const std::vector<Tensor>& tensors);
std::vector<Tensor> to_tensors(std::string_view form, const std::vector<rpc::Bytes>& bulk,
                               std::string_view what);

}  // namespace cohort::internal
