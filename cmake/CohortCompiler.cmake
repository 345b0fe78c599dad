# How everything here is compiled: warnings, sanitizers, ccache, mold, precompiled headers.
#
# cohort_options: for every target. cohort_private_options: for our own sources only.
# cohort_test_options: for tests, whose own code is never hot: a third of what they cost to compile
#   would be its optimisation.
# cohort_precompile(TARGET LIBRARY|DATA_LIBRARY|TEST|USER): shares one precompiled header among all
#   libraries of a kind, one among all tests, and one among what includes <cohort/cohort.h>; does
#   nothing where COHORT_PRECOMPILED_HEADERS is off.
# cohort_hide(TARGET): what it does not mark with COHORT_API, the shared library does not export.
# cohort_show(TARGET): the shared library exports all of it, for another one of ours.

option(COHORT_WERROR "Warnings in our own sources are errors" OFF)

add_library(cohort_options INTERFACE)
target_compile_features(cohort_options INTERFACE cxx_std_20)
target_include_directories(cohort_options INTERFACE ${PROJECT_SOURCE_DIR}
                                                    ${PROJECT_BINARY_DIR}/include)
# What is compiled without libtorch is linked with it, too.
target_compile_definitions(cohort_options
                           INTERFACE _GLIBCXX_USE_CXX11_ABI=${Libtorch_CXX11_ABI})

add_library(cohort_private_options INTERFACE)
target_compile_options(
  cohort_private_options INTERFACE -Wall -Wextra -Wpedantic -Werror=return-type
                                   -Wno-unused-parameter -fstack-protector-strong)
# A fused multiply-add rounds once where two operations round twice. g++ makes one of them wherever
# the processor has it, so on ARM64 everywhere: then a number would depend on the processor, and on
# how the compiler has arranged an expression. The kernels that may fuse say so themselves.
target_compile_options(cohort_private_options INTERFACE -ffp-contract=off)
add_library(cohort_test_options INTERFACE)
target_link_libraries(cohort_test_options INTERFACE cohort_private_options)
# GoogleTest's macros hold the file's name: the same in each clone, for ccache.
target_compile_options(cohort_test_options INTERFACE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo)$")
  target_compile_options(cohort_private_options INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  target_compile_options(cohort_test_options INTERFACE -O1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^1[23]\\.")
    # False alarms inside of std::string wherever it is inlined: https://gcc.gnu.org/PR105329 and
    # PR105651.
    target_compile_options(cohort_private_options INTERFACE -Wno-restrict -Wno-stringop-overflow)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # A false alarm where a handle's temporary returns a reference to what outlives it.
  target_compile_options(cohort_private_options INTERFACE -Wno-dangling-reference)
endif()
if(COHORT_WERROR)
  target_compile_options(cohort_private_options INTERFACE -Werror)
endif()

if(COHORT_SANITIZE STREQUAL "address")
  set(cohort_sanitizers -fsanitize=address,undefined -fno-sanitize-recover=undefined)
elseif(COHORT_SANITIZE STREQUAL "thread")
  # Never with -fopenmp: its join is invisible to the sanitizer and gives false reports.
  set(cohort_sanitizers -fsanitize=thread)
elseif(COHORT_SANITIZE STREQUAL "fuzz")
  set(cohort_sanitizers -fsanitize=fuzzer-no-link,address,undefined
                        -fno-sanitize-recover=undefined)
elseif(NOT COHORT_SANITIZE STREQUAL "")
  message(FATAL_ERROR "COHORT_SANITIZE is '${COHORT_SANITIZE}'; use 'address', 'thread', 'fuzz' "
                      "or nothing")
endif()
if(COHORT_SANITIZE)
  # Both: a test of what is installed has the private options only.
  foreach(options cohort_options cohort_private_options)
    target_compile_options(${options} INTERFACE ${cohort_sanitizers} -fno-omit-frame-pointer)
    target_compile_definitions(${options} INTERFACE _GLIBCXX_ASSERTIONS)
    target_link_options(${options} INTERFACE ${cohort_sanitizers})
  endforeach()
endif()

find_program(COHORT_CCACHE ccache)
mark_as_advanced(COHORT_CCACHE)
if(COHORT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without this sloppiness ccache never caches what includes a precompiled header. The base folder
  # lets clones at different places share what was compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${COHORT_CCACHE})
endif()

find_program(COHORT_MOLD mold)
mark_as_advanced(COHORT_MOLD)
if(COHORT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

function(cohort_hide target)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden
                                             VISIBILITY_INLINES_HIDDEN ON)
endfunction()

function(cohort_show target)
  set_target_properties(${target} PROPERTIES VISIBILITY_INLINES_HIDDEN ON)
  # What it exports it still calls, and inlines, as its own.
  target_compile_options(${target} PRIVATE -fno-semantic-interposition)
endfunction()

# The headers of the libraries and that of the tests differ because those are compiled -fPIC, this
# one -fPIE, and those of the libraries in their visibility, which g++ refuses to mix.
if(COHORT_PRECOMPILED_HEADERS)
  set(cohort_common_headers <ATen/core/Tensor.h> <ATen/TensorOperators.h> <algorithm> <functional>
                            <map> <memory> <optional> <string> <vector>)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "int main() { return 0; }\n")

  foreach(precompiled cohort_precompiled cohort_precompiled_data)
    add_library(${precompiled} OBJECT ${PROJECT_BINARY_DIR}/precompiled.cc)
    target_link_libraries(${precompiled} PRIVATE cohort_options cohort_private_options
                                                 Libtorch::Libtorch Threads::Threads)
    target_precompile_headers(${precompiled} PRIVATE ${cohort_common_headers})
  endforeach()
  cohort_hide(cohort_precompiled)
  cohort_show(cohort_precompiled_data)

  if(COHORT_BUILD_TESTS)
    add_executable(cohort_precompiled_test ${PROJECT_BINARY_DIR}/precompiled.cc)
    target_link_libraries(
      cohort_precompiled_test PRIVATE cohort_options cohort_test_options Libtorch::Libtorch
                                      Threads::Threads GTest::gmock)
    target_precompile_headers(cohort_precompiled_test PRIVATE ${cohort_common_headers}
                              <gtest/gtest.h> <gmock/gmock.h>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Lets ccache see which precompiled header a source was compiled with.
    target_compile_options(cohort_private_options INTERFACE -fpch-preprocess)
  endif()
endif()

function(cohort_precompile target kind)
  if(COHORT_PRECOMPILED_HEADERS)
    if(kind STREQUAL "LIBRARY")
      target_precompile_headers(${target} REUSE_FROM cohort_precompiled)
    elseif(kind STREQUAL "DATA_LIBRARY")
      target_precompile_headers(${target} REUSE_FROM cohort_precompiled_data)
    elseif(kind STREQUAL "USER")
      target_precompile_headers(${target} REUSE_FROM cohort_precompiled_user)
    else()
      target_precompile_headers(${target} REUSE_FROM cohort_precompiled_test)
    endif()
  endif()
endfunction()
