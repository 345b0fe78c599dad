# cohort_library(NAME [IN_DATA_LIBRARY] SOURCES ... [DEPS ...] [PRIVATE_DEPS ...] [NO_LIBTORCH])
#   One static library a folder: target cohort_NAME, alias cohort::NAME; all of them make up the
#   shared libraries cohort::cohort and, those IN_DATA_LIBRARY, cohort::data. DEPS are what its
#   headers include, PRIVATE_DEPS what only its sources do. NO_LIBTORCH: for parsers, which fuzzers
#   run without libtorch's 300 MB.
# cohort_unit_tests(NAME SOURCES ... [DEPS ...] [NO_LIBTORCH])
#   One GoogleTest program a folder: target NAME_test, label `unit`. NO_LIBTORCH: what it tests
#   needs none. Takes the other options of cohort_test_program, too.
# cohort_test_program(NAME SOURCES ... [DEPS ...] LABELS ... [SHARDS n] [TIMEOUT s] [SERIAL]
#                     [NO_LIBTORCH])
#   The same for what spans folders (labels `multiproc`, `slow`, `fault-row-12`, ...). The program is
#   one ctest entry, or n entries that share its tests: loading libtorch takes longer than most tests
#   do. TIMEOUT is an entry's. COHORT_TEST_EACH makes an entry of each test instead.
# cohort_program(NAME SOURCES ... [DEPS ...])
#   A program in bin/. Where it has several sources, what uses all of Cohort has it precompiled.

include(CohortCompiler)
include(GoogleTest)

option(COHORT_TEST_EACH "One ctest entry a test instead of one a program" OFF)

# All GoogleTest programs, for scripts/test, and their sources, for tests/conformance; a line each.
foreach(kind programs sources)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/test-${kind}.txt
       CONTENT "$<JOIN:$<TARGET_PROPERTY:cohort_test_options,cohort_${kind}>,\n>\n")
endforeach()

foreach(library COHORT COHORT_DATA)
  set_property(GLOBAL PROPERTY ${library}_LIBRARIES "")
  set_property(GLOBAL PROPERTY ${library}_LIBRARY_DEPS "")
endforeach()

function(cohort_library name)
  cmake_parse_arguments(arg "IN_DATA_LIBRARY;NO_LIBTORCH" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(cohort_${name} STATIC ${arg_SOURCES})
  add_library(cohort::${name} ALIAS cohort_${name})
  if(arg_IN_DATA_LIBRARY)
    set(library COHORT_DATA)
    set(kind DATA_LIBRARY)
    cohort_show(cohort_${name})
  else()
    set(library COHORT)
    set(kind LIBRARY)
    cohort_hide(cohort_${name})
  endif()
  target_link_libraries(
    cohort_${name}
    PUBLIC cohort_options Threads::Threads ${arg_DEPS}
    PRIVATE cohort_private_options ${arg_PRIVATE_DEPS})
  if(NOT arg_NO_LIBTORCH)
    target_link_libraries(cohort_${name} PUBLIC Libtorch::Libtorch)
    cohort_precompile(cohort_${name} ${kind})
  endif()
  set_property(GLOBAL APPEND PROPERTY ${library}_LIBRARIES cohort_${name})
  list(FILTER arg_PRIVATE_DEPS EXCLUDE REGEX "^cohort::")
  set_property(GLOBAL APPEND PROPERTY ${library}_LIBRARY_DEPS ${arg_PRIVATE_DEPS})
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
  cmake_parse_arguments(arg "SERIAL;NO_LIBTORCH" "SHARDS;TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT COHORT_BUILD_TESTS)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE cohort_test_options cohort_test_locale ${arg_DEPS}
                                        GTest::gmock GTest::gtest_main)
  if(NOT arg_NO_LIBTORCH)  # which the precompiled header includes
    cohort_precompile(${name} TEST)
  endif()
  list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(TARGET cohort_test_options APPEND PROPERTY cohort_programs ${name})
  set_property(TARGET cohort_test_options APPEND PROPERTY cohort_sources ${arg_SOURCES})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(COHORT_SANITIZE)
    math(EXPR arg_TIMEOUT "5 * ${arg_TIMEOUT}")
  endif()
  set(properties TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ${arg_SERIAL})
  if(COHORT_TEST_EACH)
    # Before the first test run and not after each link: the test preset's environment holds then.
    # Parameters count by their number or name: their printed bytes would differ from run to run.
    list(GET arg_LABELS 0 label)  # a list of them would not arrive
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 NO_PRETTY_VALUES
                         PROPERTIES LABELS ${label} ${properties})
    return()
  endif()
  if(NOT arg_SHARDS)
    cohort_test_entry(${name} ${name})
  else()
    math(EXPR last "${arg_SHARDS} - 1")
    foreach(index RANGE ${last})
      math(EXPR shard "${index} + 1")
      cohort_test_entry(${name}/${shard} ${name} GTEST_TOTAL_SHARDS=${arg_SHARDS}
                        GTEST_SHARD_INDEX=${index})
    endforeach()
  endif()
endfunction()

# The ctest entry that runs `program` in the environment that follows; its tests' names and times go
# to test-results/. For cohort_test_program, whose variables it uses.
macro(cohort_test_entry entry program)
  string(REPLACE "/" "." results ${entry})
  add_test(NAME ${entry}
           COMMAND ${program} --gtest_output=xml:${PROJECT_BINARY_DIR}/test-results/${results}.xml)
  set_tests_properties(${entry} PROPERTIES LABELS "${arg_LABELS}" ENVIRONMENT "${ARGN}"
                                           ${properties})
endmacro()

# Tests of a program that belong to a row of the fault matrix: an entry that scripts/faults finds.
function(cohort_fault_row row program filter)
  if(NOT COHORT_BUILD_TESTS)
    return()
  endif()
  add_test(NAME fault-row-${row}.${program} COMMAND ${program} --gtest_filter=${filter})
  set_tests_properties(fault-row-${row}.${program}
                       PROPERTIES LABELS fault-row-${row} TIMEOUT 120
                                  FAIL_REGULAR_EXPRESSION "Running 0 tests")
endfunction()

function(cohort_unit_tests name)
  cohort_test_program(${name}_test LABELS unit ${ARGN})
endfunction()
