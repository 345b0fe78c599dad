# Installs BUILD below WORK, builds the project SOURCE against it alone, and runs it. Then configures
# the project SUBPROJECT, which has the sources COHORT within itself.
function(must)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed (${status}): ${command}\n${output}${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
must(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/prefix
     -DCMAKE_CXX_COMPILER=${COMPILER} -DLibtorch_ROOT=${Libtorch_ROOT})
must(${CMAKE_COMMAND} --build ${WORK}/build)
must(${WORK}/build/consumer)
if(NOT output STREQUAL "cohort ${VERSION}: 2 replicas, sum 3\n")
  message(FATAL_ERROR "the consumer printed: ${output}")
endif()

must(${WORK}/build/job_test)
if(NOT output STREQUAL "counts\ncaught from /job:worker/task:1\n")
  message(FATAL_ERROR "the consumer's test printed: ${output}")
endif()

# Helpers of our own tests are nobody else's.
file(GLOB_RECURSE headers RELATIVE ${WORK}/prefix/include ${WORK}/prefix/include/*.h)
foreach(header IN LISTS headers)
  if(header MATCHES "test" AND NOT header MATCHES "^cohort/testing/")
    message(FATAL_ERROR "${header} was installed")
  endif()
endforeach()

# A program must keep the soname, and with it the interface, that it was linked with.
string(REGEX REPLACE "^([0-9]+\\.[0-9]+).*" "\\1" soversion ${VERSION})
file(GLOB_RECURSE library ${WORK}/prefix/libcohort.so.${soversion})
if(NOT library)
  message(FATAL_ERROR "no libcohort.so.${soversion} was installed")
endif()

# What another minor version was asked for must not be found.
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/other -G Ninja -DWANTED=99.0
          -DCMAKE_PREFIX_PATH=${WORK}/prefix
  RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
if(status EQUAL 0)
  message(FATAL_ERROR "find_package(cohort 99.0) found version ${VERSION}")
endif()

# With the sources in a project there are no tests and tools of ours. To compile them again would
# take minutes: one source of the project shows that it finds the headers.
must(${CMAKE_COMMAND} -S ${SUBPROJECT} -B ${WORK}/sub -G Ninja -DCOHORT=${COHORT}
     -DCMAKE_CXX_COMPILER=${COMPILER} -DLibtorch_ROOT=${Libtorch_ROOT})
must(${CMAKE_COMMAND} --build ${WORK}/sub --target CMakeFiles/job_test.dir${SOURCE}/job_test.cc.o)
must(ninja -C ${WORK}/sub -t targets all)
if(output MATCHES "bin/demo|keras_test|cohort_command")
  message(FATAL_ERROR "a project with Cohort's sources builds its examples, tests or tools, too")
endif()
