// oneDNN's header for C++, calling a library that is loaded in a scope of its own. A libtorch that
// has another oneDNN inside may export functions of the same names, such as those that
// std::call_once makes of the library's lambdas; linked, each library would run the other's code.
//
// Nothing is linked: the header's calls find the objects below, which forward them, before they
// find the library's own declarations. A call of a function that the list lacks does not link.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <stdexcept>

// The functions of both generations of the library, and those of one.
#define COHORT_ONEDNN_COMMON_FUNCTIONS(X)    \
  X(dnnl_engine_create)                      \
  X(dnnl_engine_destroy)                     \
  X(dnnl_memory_desc_equal)                  \
  X(dnnl_memory_destroy)                     \
  X(dnnl_primitive_attr_create)              \
  X(dnnl_primitive_attr_destroy)             \
  X(dnnl_primitive_attr_set_scratchpad_mode) \
  X(dnnl_primitive_create)                   \
  X(dnnl_primitive_desc_destroy)             \
  X(dnnl_primitive_desc_query)               \
  X(dnnl_primitive_desc_query_md)            \
  X(dnnl_primitive_destroy)                  \
  X(dnnl_primitive_execute)                  \
  X(dnnl_reorder_primitive_desc_create)      \
  X(dnnl_stream_create)                      \
  X(dnnl_stream_destroy)                     \
  X(dnnl_version)
#if DNNL_VERSION_MAJOR == 2
#define COHORT_ONEDNN_FUNCTIONS(X)                       \
  COHORT_ONEDNN_COMMON_FUNCTIONS(X)                      \
  X(dnnl_dilated_convolution_backward_data_desc_init)    \
  X(dnnl_dilated_convolution_backward_weights_desc_init) \
  X(dnnl_dilated_convolution_forward_desc_init)          \
  X(dnnl_matmul_desc_init)                               \
  X(dnnl_memory_create)                                  \
  X(dnnl_memory_desc_get_size)                           \
  X(dnnl_memory_desc_init_by_strides)                    \
  X(dnnl_memory_desc_init_by_tag)                        \
  X(dnnl_memory_get_data_handle)                         \
  X(dnnl_memory_set_data_handle_v2)                      \
  X(dnnl_primitive_desc_iterator_create)                 \
  X(dnnl_primitive_desc_iterator_destroy)                \
  X(dnnl_primitive_desc_iterator_fetch)
#else
#define COHORT_ONEDNN_FUNCTIONS(X)                           \
  COHORT_ONEDNN_COMMON_FUNCTIONS(X)                          \
  X(dnnl_convolution_backward_data_primitive_desc_create)    \
  X(dnnl_convolution_backward_weights_primitive_desc_create) \
  X(dnnl_convolution_forward_primitive_desc_create)          \
  X(dnnl_matmul_primitive_desc_create)                       \
  X(dnnl_memory_create_v2)                                   \
  X(dnnl_memory_desc_clone)                                  \
  X(dnnl_memory_desc_create_with_strides)                    \
  X(dnnl_memory_desc_create_with_tag)                        \
  X(dnnl_memory_desc_destroy)                                \
  X(dnnl_memory_desc_get_size_v2)                            \
  X(dnnl_memory_desc_query)                                  \
  X(dnnl_memory_get_data_handle_v2)                          \
  X(dnnl_memory_set_data_handle_v2)
#endif

namespace cohort::internal::plan {

// Why there is no plan for these operations, shapes, this processor or this library.
class NotPlanned : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The library's functions.
struct OneDnn {
#define COHORT_ONEDNN_MEMBER(name) decltype(&::name) name;
  COHORT_ONEDNN_FUNCTIONS(COHORT_ONEDNN_MEMBER)
#undef COHORT_ONEDNN_MEMBER
};

// Loads the library with the first call. Thread-safe.
// Errors: FailedPrecondition (there is no such library), NotPlanned (a sanitizer lets nothing be
// loaded in a scope of its own, or another generation is loaded than this was compiled for).
const OneDnn& onednn();

template <auto Function>
struct OneDnnCall;
template <class Result, class... Arguments, Result (*OneDnn::*Function)(Arguments...)>
struct OneDnnCall<Function> {
  Result operator()(Arguments... arguments) const { return (onednn().*Function)(arguments...); }
};

}  // namespace cohort::internal::plan

namespace dnnl {
#define COHORT_ONEDNN_CALL(name) \
  inline constexpr cohort::internal::plan::OneDnnCall<&cohort::internal::plan::OneDnn::name> name;
COHORT_ONEDNN_FUNCTIONS(COHORT_ONEDNN_CALL)
#undef COHORT_ONEDNN_CALL
}  // namespace dnnl

#include <oneapi/dnnl/dnnl.hpp>
