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
  dnnl::dnnl_primitive_desc_query(description.get(), dnnl_query_impl_info_str, 0, &name);
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
      dnnl::dnnl_primitive_execute(primitive_.get(), thread_stream().get(),
                                   static_cast<int>(arguments_.size()), arguments_.data());
  if (status != dnnl_success) {
    throw InternalError(str("a primitive of oneDNN failed with status ", static_cast<int>(status)));
  }
}

namespace {

// What both generations of the library say of a layout.
struct Blocks {
  bool plain;  // nothing but blocks
  std::vector<int64_t> dims;
  std::vector<int64_t> padded;      // with what fills the last block of each dimension
  std::vector<int64_t> strides;     // between blocks
  std::vector<int64_t> inner_dims;  // the dimensions that have blocks within them
  std::vector<int64_t> inner_sizes;
  int64_t offset;
};

#if DNNL_VERSION_MAJOR == 2
Blocks blocks_of(const Layout& layout) {
  const dnnl_memory_desc_t& data = layout.data;
  const dnnl_blocking_desc_t& inner = data.format_desc.blocking;
  if (data.format_kind != dnnl_blocked || data.extra.flags != 0) return {};
  return {.plain = true,
          .dims = {data.dims, data.dims + data.ndims},
          .padded = {data.padded_dims, data.padded_dims + data.ndims},
          .strides = {inner.strides, inner.strides + data.ndims},
          .inner_dims = {inner.inner_idxs, inner.inner_idxs + inner.inner_nblks},
          .inner_sizes = {inner.inner_blks, inner.inner_blks + inner.inner_nblks},
          .offset = data.offset0};
}
#else
Blocks blocks_of(const Layout& layout) {
  if (layout.get_format_kind() != dnnl::memory::format_kind::blocked) return {};
  return {.plain = true,
          .dims = layout.get_dims(),
          .padded = layout.get_padded_dims(),
          .strides = layout.get_strides(),
          .inner_dims = layout.get_inner_idxs(),
          .inner_sizes = layout.get_inner_blks(),
          .offset = layout.get_submemory_offset()};
}
#endif

// How many elements the indices of each dimension lie apart; nothing if the layout is in blocks,
// but for a single block that is the whole dimension.
std::optional<std::vector<int64_t>> strides_of(const Blocks& blocks) {
  if (!blocks.plain || blocks.inner_dims.size() > 1) return std::nullopt;
  std::vector<int64_t> strides = blocks.strides;
  if (blocks.inner_dims.size() == 1) {
    const auto blocked = static_cast<size_t>(blocks.inner_dims[0]);
    if (blocks.padded[blocked] != blocks.inner_sizes[0]) return std::nullopt;
    strides[blocked] = 1;
  }
  for (size_t i = 0; i < blocks.dims.size(); ++i) {
    if (blocks.padded[i] != blocks.dims[i]) return std::nullopt;
    if (blocks.dims[i] == 1) strides[i] = 0;
  }
  return strides;
}

// Also where descriptions differ: a kernel of 64 filters is its own block of 64.
bool lie_alike(const Layout& a, const Layout& b) {
  if (a == b) return true;
  if (a.get_size() != b.get_size()) return false;
  const Blocks of_a = blocks_of(a), of_b = blocks_of(b);
  const auto strides = strides_of(of_a);
  return strides && of_a.dims == of_b.dims && of_a.offset == of_b.offset &&
         strides == strides_of(of_b);
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
