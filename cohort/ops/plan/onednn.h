// oneDNN's primitives, made once and run often. The only headers of Cohort that name the library
// are this one and what includes it, sources of this folder.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "cohort/core/function_ref.h"
#include "cohort/ops/plan/buffer.h"
#include "cohort/ops/plan/onednn_functions.h"

namespace cohort::internal::plan {

using Layout = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
inline constexpr auto kFloat = dnnl::memory::data_type::f32;

const dnnl::engine& processor();

// Memory that the primitives of one thread use while they run, one at a time.
class Scratch {
 public:
  void reserve(size_t bytes);
  void* data() const { return memory_.data(); }

 private:
  Buffer<char> memory_;
  size_t bytes_ = 0;
};

// Attributes that leave scratch memory to us: the library's own belongs to the thread that made the
// primitive.
dnnl::primitive_attr own_scratch();
// Describes a Kind of primitive by the arguments of its descriptor that both generations of the
// library share; forward: that of which it is the gradient.
template <class Kind, class... Arguments>
typename Kind::primitive_desc describe(const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR == 2
  return {typename Kind::desc(arguments...), own_scratch(), processor()};
#else
  return {processor(), arguments..., own_scratch()};
#endif
}
template <class Kind, class Forward, class... Arguments>
typename Kind::primitive_desc describe_gradient(const Forward& forward,
                                                const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR == 2
  return {typename Kind::desc(arguments...), own_scratch(), processor(), forward};
#else
  return {processor(), arguments..., forward, own_scratch()};
#endif
}
// Calls make(), so that what it makes runs on the calling thread alone, whatever number of threads
// there is. Errors: NotPlanned (what the library refuses).
void for_one_thread(FunctionRef<void()> make);
// Errors: NotPlanned, where only the library's slow reference would compute this here.
void check_is_fast(const dnnl::primitive_desc_base& description, const char* what);

// A primitive with memory objects of its own. Thread safety: none.
class Primitive {
 public:
  Primitive() = default;
  // arguments: DNNL_ARG_SRC, ...; scratch: outlives it.
  Primitive(const dnnl::primitive_desc_base& description, const std::vector<int>& arguments,
            Scratch& scratch);

  // data: that of each argument. Errors: Internal.
  void operator()(std::initializer_list<const void*> data);

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  Scratch* scratch_ = nullptr;
};

// A copy between two layouts; none where both put each element at the same place.
class Relayout {
 public:
  Relayout(const Layout& from, const Layout& to);
  Relayout(const Relayout&) = delete;
  Relayout& operator=(const Relayout&) = delete;
  // `from` itself where there is none, else the copy in this object's memory.
  const float* operator()(const float* from);
  // Into the caller's.
  void to(const float* from, float* to);

 private:
  bool same_;
  size_t bytes_;
  Scratch scratch_;
  Primitive copy_;
  Buffer<float> memory_;
};

// Elements that the layout takes, with its padding.
inline int64_t elements(const Layout& layout) {
  return static_cast<int64_t>(layout.get_size() / sizeof(float));
}

}  // namespace cohort::internal::plan
