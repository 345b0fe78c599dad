#include "cohort/ops/plan/onednn.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/core/error.h"

namespace cohort::internal::plan {
namespace {

dnnl::stream& thread_stream() {
  thread_local dnnl::stream stream(processor());
  return stream;
}

}  // namespace

void check_library() {
  const dnnl_version_t* const loaded = dnnl_version();
  if (loaded->major == DNNL_VERSION_MAJOR && loaded->minor >= DNNL_VERSION_MINOR) return;
  throw NotPlanned(str("oneDNN ", loaded->major, ".", loaded->minor, " is loaded, not ",
                       DNNL_VERSION_MAJOR, ".", DNNL_VERSION_MINOR));
}

const dnnl::engine& processor() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

void Scratch::reserve(size_t bytes) {
  if (bytes <= bytes_) return;
  memory_ = Buffer<char>(static_cast<int64_t>(bytes));
  bytes_ = bytes;
}

dnnl::primitive_attr own_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

void for_one_thread(FunctionRef<void()> make) {
  const OneIntraOpThread one_thread;  // the library asks OpenMP how many a primitive will have
  try {
    make();
  } catch (const dnnl::error& error) {
    throw NotPlanned(str("oneDNN: ", error.message));
  }
}

void check_is_fast(const dnnl::primitive_desc_base& description, const char* what) {
  const char* name = nullptr;
  dnnl_primitive_desc_query(description.get(), dnnl_query_impl_info_str, 0, &name);
  if (name != nullptr && std::strncmp(name, "ref", 3) == 0) {
    throw NotPlanned(str("oneDNN has no fast ", what, " for these sizes on this processor"));
  }
}

Primitive::Primitive(const dnnl::primitive_desc_base& description,
                     const std::vector<int>& arguments, Scratch& scratch)
    : primitive_(description.get()), scratch_(&scratch) {
  const auto append = [&](int argument, const Layout& layout) {
    memories_.push_back(dnnl::memory(layout, processor(), DNNL_MEMORY_NONE));
    arguments_.push_back({argument, memories_.back().get()});
  };
  for (const int argument : arguments) {
    append(argument, description.query_md(dnnl::query::exec_arg_md, argument));
  }
  const Layout layout = description.query_md(dnnl::query::exec_arg_md, DNNL_ARG_SCRATCHPAD);
  if (layout.get_size() > 0) {
    scratch.reserve(layout.get_size());
    append(DNNL_ARG_SCRATCHPAD, layout);
  } else {
    scratch_ = nullptr;
  }
}

void Primitive::operator()(std::initializer_list<const void*> data) {
  const auto set = [&](size_t i, const void* address) {
    void* const handle = const_cast<void*>(address);
    if (memories_[i].get_data_handle() != handle) memories_[i].set_data_handle(handle);
  };
  size_t next = 0;
  for (const void* address : data) set(next++, address);
  if (scratch_ != nullptr) set(next++, scratch_->data());
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), thread_stream().get(),
                             static_cast<int>(arguments_.size()), arguments_.data());
  if (status != dnnl_success) {
    throw InternalError(str("a primitive of oneDNN failed with status ", static_cast<int>(status)));
  }
}

namespace {

// How many elements the indices of each dimension lie apart; nothing if the layout is in blocks,
// but for a single block that is the whole dimension.
std::optional<std::vector<int64_t>> strides_of(const Layout& layout) {
  const dnnl_memory_desc_t& data = layout.data;
  const dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  if (data.format_kind != dnnl_blocked || data.extra.flags != 0 || blocking.inner_nblks > 1) {
    return std::nullopt;
  }
  std::vector<int64_t> strides(blocking.strides, blocking.strides + data.ndims);
  if (blocking.inner_nblks == 1) {
    const auto blocked = blocking.inner_idxs[0];
    if (data.padded_dims[blocked] != blocking.inner_blks[0]) return std::nullopt;
    strides[static_cast<size_t>(blocked)] = 1;
  }
  for (int i = 0; i < data.ndims; ++i) {
    if (data.padded_dims[i] != data.dims[i]) return std::nullopt;
    if (data.dims[i] == 1) strides[static_cast<size_t>(i)] = 0;
  }
  return strides;
}

// Also where descriptions differ: a kernel of 64 filters is its own block of 64.
bool lie_alike(const Layout& a, const Layout& b) {
  if (a == b) return true;
  const auto strides = strides_of(a);
  return strides && a.get_size() == b.get_size() && a.dims() == b.dims() &&
         a.data_type() == b.data_type() && a.data.offset0 == b.data.offset0 &&
         strides == strides_of(b);
}

}  // namespace

Relayout::Relayout(const Layout& from, const Layout& to)
    : same_(lie_alike(from, to)), bytes_(to.get_size()) {
  if (same_) return;
  for_one_thread([&] {
    copy_ =
        Primitive(dnnl::reorder::primitive_desc(processor(), from, processor(), to, own_scratch()),
                  {DNNL_ARG_FROM, DNNL_ARG_TO}, scratch_);
  });
}

const float* Relayout::operator()(const float* from) {
  if (same_) return from;
  if (memory_.data() == nullptr)
    memory_ = Buffer<float>(static_cast<int64_t>(bytes_ / sizeof(float)));
  copy_({from, memory_.data()});
  return memory_.data();
}

void Relayout::to(const float* from, float* to) {
  if (same_) {
    std::memcpy(to, from, bytes_);
  } else {
    copy_({from, to});
  }
}

}  // namespace cohort::internal::plan
