// Work that a device does beside its other work, and the order between the two.
//
// A device runs what is queued on one of its streams in order, and different streams side by side.
// A c10::Event orders them: what is queued on a stream after event.block(stream) comes after all
// that was queued where the event was recorded.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// The stream of what the calling thread does on `device`.
c10::Stream current_stream(c10::Device device);
// The stream of `device` for copies from the host ahead of their use: the same one at each call.
// Thread safety: any thread.
c10::Stream copy_stream(c10::Device device);
// Keeps the memory of `tensor`, once it is released, from new tensors until all is done that is
// queued on `stream` by then. Needed where a tensor is used on another stream than the one on which
// it was made.
void keep_until_done(const Tensor& tensor, c10::Stream stream);

}  // namespace cohort::internal
