# cohort_library(NAME SOURCES ... [DEPS ...] [PRIVATE_DEPS ...] [NO_LIBTORCH])
#   One static library a folder: target cohort_NAME, alias cohort::NAME; all of them make up the
#   shared library cohort::cohort. DEPS are what its headers include, PRIVATE_DEPS what only its
#   sources do. NO_LIBTORCH: for parsers, which fuzzers run without libtorch's 300 MB.
# cohort_unit_tests(NAME SOURCES ... [DEPS ...] [NO_LIBTORCH])
#   One GoogleTest program a folder: target NAME_test, one ctest entry a test, label `unit`.
#   NO_LIBTORCH: what it tests needs none.
# cohort_test_program(NAME SOURCES ... [DEPS ...] LABELS ... [TIMEOUT s] [SERIAL] [NO_LIBTORCH])
#   The same for what spans folders (labels `multiproc`, `slow`, `fault-row-12`, ...).
# cohort_program(NAME SOURCES ... [DEPS ...])
#   A program in bin/. Where it has several sources, what uses all of Cohort has it precompiled.

include(CohortCompiler)
include(GoogleTest)

set_property(GLOBAL PROPERTY COHORT_LIBRARIES "")
set_property(GLOBAL PROPERTY COHORT_LIBRARY_DEPS "")

function(cohort_library name)
  cmake_parse_arguments(arg "NO_LIBTORCH" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(cohort_${name} STATIC ${arg_SOURCES})
  add_library(cohort::${name} ALIAS cohort_${name})
  cohort_hide(cohort_${name})
  target_link_libraries(
    cohort_${name}
    PUBLIC cohort_options Threads::Threads ${arg_DEPS}
    PRIVATE cohort_private_options ${arg_PRIVATE_DEPS})
  if(NOT arg_NO_LIBTORCH)
    target_link_libraries(cohort_${name} PUBLIC Libtorch::Libtorch)
    cohort_precompile(cohort_${name} LIBRARY)
  endif()
  set_property(GLOBAL APPEND PROPERTY COHORT_LIBRARIES cohort_${name})
  list(FILTER arg_PRIVATE_DEPS EXCLUDE REGEX "^cohort::")
  set_property(GLOBAL APPEND PROPERTY COHORT_LIBRARY_DEPS ${arg_PRIVATE_DEPS})
endfunction()

function(cohort_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE cohort_private_options ${arg_DEPS})
  list(LENGTH arg_SOURCES num_sources)
  if("cohort::cohort" IN_LIST arg_DEPS AND num_sources GREATER 1)
    cohort_precompile(${name} USER)
  endif()
endfunction()

function(cohort_test_program name)
  cmake_parse_arguments(arg "SERIAL;NO_LIBTORCH" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT COHORT_BUILD_TESTS)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE cohort_private_options ${arg_DEPS} GTest::gmock
                                        GTest::gtest_main)
  if(NOT arg_NO_LIBTORCH)  # which the precompiled header includes
    cohort_precompile(${name} TEST)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  set(properties LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
  if(arg_SERIAL)
    list(APPEND properties RUN_SERIAL ON)
  endif()
  # Before the first test run and not after each link: the test preset's environment holds then.
  # Parameters count by their number or name: their printed bytes would differ from run to run.
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 NO_PRETTY_VALUES
                       PROPERTIES ${properties})
endfunction()

function(cohort_unit_tests name)
  cohort_test_program(${name}_test LABELS unit ${ARGN})
endfunction()
