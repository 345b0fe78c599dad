#include "cohort/ops/plan/onednn_functions.h"

#include <dlfcn.h>

#include <string>

#include "cohort/core/error.h"

namespace cohort::internal::plan {
namespace {

// A libtorch that is linked with the library has loaded it; then that is the one. RTLD_DEEPBIND
// lets the library's own functions come before others' of the same names.
void* load_library() {
  const std::string name = COHORT_ONEDNN_LIBRARY;
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library != nullptr) return library;
  if (dlsym(RTLD_DEFAULT, "__sanitizer_print_stack_trace") != nullptr) {
    throw NotPlanned("a sanitizer does not let oneDNN be loaded in a scope of its own");
  }
  library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (library != nullptr) return library;
  const char* const reason = dlerror();
  throw FailedPreconditionError(str("oneDNN cannot be loaded: ", reason != nullptr ? reason : name,
                                    "; install its package, which holds ", name));
}

template <class Function>
Function find(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == nullptr) {
    throw NotPlanned(str("the oneDNN that is loaded has no ", name, ", which ", DNNL_VERSION_MAJOR,
                         ".", DNNL_VERSION_MINOR, " has"));
  }
  return reinterpret_cast<Function>(found);
}

OneDnn load() {
  void* const library = load_library();
  OneDnn functions;
#define COHORT_ONEDNN_FIND(name) functions.name = find<decltype(&::name)>(library, #name);
  COHORT_ONEDNN_FUNCTIONS(COHORT_ONEDNN_FIND)
#undef COHORT_ONEDNN_FIND
  const dnnl_version_t* const loaded = functions.dnnl_version();
  if (loaded->major != DNNL_VERSION_MAJOR || loaded->minor < DNNL_VERSION_MINOR) {
    throw NotPlanned(str("oneDNN ", loaded->major, ".", loaded->minor, " is loaded, not ",
                         DNNL_VERSION_MAJOR, ".", DNNL_VERSION_MINOR));
  }
  return functions;
}

}  // namespace

const OneDnn& onednn() {
  static const OneDnn functions = load();
  return functions;
}

}  // namespace cohort::internal::plan
