# Finds libtorch without its own package file: that one fails without a CUDA toolkit when
# libtorch was built with CUDA, although its CPU part needs none.
#
# -DLibtorch_ROOT=DIR, where DIR holds include/ and lib/ (the folder torch/ of a wheel), takes that one
# and no other.
# -DLibtorch_CUDA=OFF leaves out torch_cuda, which does not load without NVIDIA's libraries.
# A version that Cohort was not tried with gets a warning; one before 1.13 is refused.
# Result: the imported target Libtorch::Libtorch, Libtorch_VERSION, Libtorch_CXX11_ABI.
option(Libtorch_CUDA "Load libtorch's CUDA part where it has one" ON)
set(Libtorch_oldest 1.13)
set(Libtorch_tried 1.13 2.6 2.7 2.11 2.15)

# Another root than the last time: what was found there does not count.
if(DEFINED CACHE{Libtorch_found_in} AND NOT Libtorch_found_in STREQUAL "${Libtorch_ROOT}")
  foreach(Libtorch_part INCLUDE_DIR torch_cpu_LIBRARY c10_LIBRARY torch_cuda_LIBRARY
                        c10_cuda_LIBRARY)
    unset(Libtorch_${Libtorch_part} CACHE)
  endforeach()
endif()
set(Libtorch_found_in "${Libtorch_ROOT}" CACHE INTERNAL "The root that Libtorch was looked for in")
set(Libtorch_places)
if(Libtorch_ROOT)
  # Headers of one libtorch and libraries of another do not go together.
  set(Libtorch_places HINTS ${Libtorch_ROOT} PATH_SUFFIXES include lib/${CMAKE_LIBRARY_ARCHITECTURE}
                      lib lib64 NO_DEFAULT_PATH)
endif()
find_path(Libtorch_INCLUDE_DIR ATen/core/Tensor.h ${Libtorch_places})
# libtorch.so itself is empty, and that of a CUDA build needs torch_cuda.
find_library(Libtorch_torch_cpu_LIBRARY torch_cpu ${Libtorch_places})
find_library(Libtorch_c10_LIBRARY c10 ${Libtorch_places})
find_library(Libtorch_torch_cuda_LIBRARY torch_cuda ${Libtorch_places})
find_library(Libtorch_c10_cuda_LIBRARY c10_cuda ${Libtorch_places})
mark_as_advanced(Libtorch_INCLUDE_DIR Libtorch_torch_cpu_LIBRARY Libtorch_c10_LIBRARY
                 Libtorch_torch_cuda_LIBRARY Libtorch_c10_cuda_LIBRARY)

if(Libtorch_INCLUDE_DIR)
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT Libtorch_VERSION AND EXISTS ${Libtorch_INCLUDE_DIR}/${header})
      file(STRINGS ${Libtorch_INCLUDE_DIR}/${header} Libtorch_version_lines
           REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
      string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCH ([0-9]+).*" "\\1.\\2.\\3"
             Libtorch_VERSION "${Libtorch_version_lines}")
    endif()
  endforeach()
endif()

unset(Libtorch_refusal)
if(Libtorch_ROOT AND NOT (Libtorch_INCLUDE_DIR AND Libtorch_torch_cpu_LIBRARY))
  set(Libtorch_refusal "Libtorch_ROOT is '${Libtorch_ROOT}', which does not hold \
include/ATen/core/Tensor.h and lib/libtorch_cpu.so. Of a wheel, name the folder torch/.")
endif()
if(Libtorch_VERSION)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" Libtorch_minor_version ${Libtorch_VERSION})
  if(Libtorch_VERSION VERSION_LESS Libtorch_oldest)
    set(Libtorch_refusal "Cohort needs libtorch ${Libtorch_oldest} or a later one: \
${Libtorch_VERSION} in ${Libtorch_INCLUDE_DIR} lacks functions that it calls. Name another one by \
-DLibtorch_ROOT=DIR.")
  elseif(NOT Libtorch_minor_version IN_LIST Libtorch_tried)
    list(JOIN Libtorch_tried ", " Libtorch_tried_text)
    message(WARNING "Cohort was tried with libtorch ${Libtorch_tried_text}, not with \
${Libtorch_VERSION} in ${Libtorch_INCLUDE_DIR}")
  endif()
endif()

# The ABI of std::string that libtorch was built with, as a function's name in c10 tells it. What
# links libtorch must have the same.
if(Libtorch_c10_LIBRARY)
  file(STRINGS ${Libtorch_c10_LIBRARY} Libtorch_abi_symbol LIMIT_COUNT 1
       REGEX "14torchCheckFailEPKcS2_jRK(Ss|NSt7__cxx11)")
  if(Libtorch_abi_symbol MATCHES "jRKSs")
    set(Libtorch_CXX11_ABI 0)
  else()
    set(Libtorch_CXX11_ABI 1)
  endif()
endif()

include(FindPackageHandleStandardArgs)
set(Libtorch_required Libtorch_torch_cpu_LIBRARY Libtorch_c10_LIBRARY Libtorch_INCLUDE_DIR)
if(Libtorch_refusal)
  set(Libtorch_accepted_version "Libtorch_accepted_version-NOTFOUND")
  list(APPEND Libtorch_required Libtorch_accepted_version)
endif()
find_package_handle_standard_args(
  Libtorch
  REQUIRED_VARS ${Libtorch_required}
  VERSION_VAR Libtorch_VERSION
  REASON_FAILURE_MESSAGE "${Libtorch_refusal}")

if(Libtorch_FOUND AND NOT TARGET Libtorch::Libtorch)
  add_library(Libtorch::Libtorch INTERFACE IMPORTED)
  set_target_properties(
    Libtorch::Libtorch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES
    "${Libtorch_INCLUDE_DIR};${Libtorch_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS
    "AT_PER_OPERATOR_HEADERS;_GLIBCXX_USE_CXX11_ABI=${Libtorch_CXX11_ABI}"
    INTERFACE_LINK_LIBRARIES "${Libtorch_torch_cpu_LIBRARY};${Libtorch_c10_LIBRARY}")
  # clang with libstdc++ 12 in C++20 mode needs the complete IValue before ATen's headers name it.
  target_compile_options(
    Libtorch::Libtorch
    INTERFACE "$<$<CXX_COMPILER_ID:Clang>:SHELL:-include ATen/core/ivalue.h>")
  # A CUDA build registers its kernels when torch_cuda is loaded; nothing refers to it by symbol.
  # Programs that choose streams or ask for a device's memory refer to c10_cuda.
  if(Libtorch_CUDA AND Libtorch_torch_cuda_LIBRARY AND Libtorch_c10_cuda_LIBRARY)
    target_link_options(
      Libtorch::Libtorch INTERFACE "LINKER:--push-state,--no-as-needed,\
${Libtorch_torch_cuda_LIBRARY},${Libtorch_c10_cuda_LIBRARY},--pop-state")
  endif()
endif()
