# Finds libtorch without its own package file: that one fails without a CUDA toolkit when
# libtorch was built with CUDA, although its CPU part needs none.
#
# Hints: -DLibtorch_ROOT=DIR, where DIR holds include/ and lib/ (an unpacked wheel's torch/ folder).
# Result: the imported target Libtorch::Libtorch, Libtorch_VERSION.
find_path(Libtorch_INCLUDE_DIR ATen/core/Tensor.h
          HINTS ${Libtorch_ROOT}/include)
find_library(Libtorch_torch_LIBRARY torch HINTS ${Libtorch_ROOT}/lib)
find_library(Libtorch_torch_cpu_LIBRARY torch_cpu HINTS ${Libtorch_ROOT}/lib)
find_library(Libtorch_c10_LIBRARY c10 HINTS ${Libtorch_ROOT}/lib)
find_library(Libtorch_torch_cuda_LIBRARY torch_cuda HINTS ${Libtorch_ROOT}/lib)
mark_as_advanced(Libtorch_INCLUDE_DIR Libtorch_torch_LIBRARY Libtorch_torch_cpu_LIBRARY
                 Libtorch_c10_LIBRARY Libtorch_torch_cuda_LIBRARY)

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

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Libtorch
  REQUIRED_VARS Libtorch_torch_cpu_LIBRARY Libtorch_torch_LIBRARY Libtorch_c10_LIBRARY
                Libtorch_INCLUDE_DIR
  VERSION_VAR Libtorch_VERSION)

if(Libtorch_FOUND AND NOT TARGET Libtorch::Libtorch)
  add_library(Libtorch::Libtorch INTERFACE IMPORTED)
  set_target_properties(
    Libtorch::Libtorch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES
    "${Libtorch_INCLUDE_DIR};${Libtorch_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "AT_PER_OPERATOR_HEADERS"
    INTERFACE_LINK_LIBRARIES
    "${Libtorch_torch_LIBRARY};${Libtorch_torch_cpu_LIBRARY};${Libtorch_c10_LIBRARY}")
  # clang with libstdc++ 12 in C++20 mode needs the complete IValue before ATen's headers name it.
  target_compile_options(
    Libtorch::Libtorch
    INTERFACE "$<$<CXX_COMPILER_ID:Clang>:SHELL:-include ATen/core/ivalue.h>")
  # A CUDA build registers its kernels when torch_cuda is loaded; nothing refers to it by symbol.
  if(Libtorch_torch_cuda_LIBRARY)
    target_link_options(
      Libtorch::Libtorch
      INTERFACE "LINKER:--push-state,--no-as-needed,${Libtorch_torch_cuda_LIBRARY},--pop-state")
  endif()
endif()
