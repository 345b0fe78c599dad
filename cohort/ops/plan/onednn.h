// oneDNN's primitives, made once and run often. The only headers of Cohort that name the library
// are this one and what includes it, sources of this folder.
#pragma once

#include <dnnl.hpp>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "cohort/core/function_ref.h"
#include "cohort/ops/plan/buffer.h"

namespace cohort::internal::plan {

using Layout = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
inline constexpr auto kFloat = dnnl::memory::data_type::f32;

// Why there is no plan for these operations, shapes or this processor.
class NotPlanned : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Errors: NotPlanned, where another generation of the library is loaded than this was compiled for:
// a libtorch with one inside may stand before it.
void check_library();
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
