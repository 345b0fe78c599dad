# Installs BUILD below WORK and moves it, builds the project SOURCE against it alone, and runs it. Does
# the same with PIPELINE, which uses cohort::data alone, and by pkg-config with PKG_CONFIG_COMPILER.
# Then configures the project SUBPROJECT, which has the sources COHORT within itself.
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
must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/installed)
file(RENAME ${WORK}/installed ${WORK}/prefix)  # whatever names the first place is not found there
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

function(must_be_alone program)
  must(${program})
  if(NOT output STREQUAL "cohort ${VERSION}: sum 36\n")
    message(FATAL_ERROR "the pipeline printed: ${output}")
  endif()
  must(ldd ${program})
  if(NOT output MATCHES "${WORK}/prefix/[^\n]*libcohort_data" OR output MATCHES "grpc|libcohort\\.")
    message(FATAL_ERROR "a program that links cohort::data alone loads: ${output}")
  endif()
endfunction()

must(${CMAKE_COMMAND} -S ${PIPELINE} -B ${WORK}/pipeline -G Ninja
     -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${COMPILER}
     -DLibtorch_ROOT=${Libtorch_ROOT})
must(${CMAKE_COMMAND} --build ${WORK}/pipeline)
must_be_alone(${WORK}/pipeline/pipeline)

# A compiler gets no other hint than pkg-config's.
file(GLOB_RECURSE pc_file ${WORK}/prefix/cohort-data.pc)
get_filename_component(pc_folder ${pc_file} DIRECTORY)
get_filename_component(library_folder ${pc_folder} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pc_folder})
must(pkg-config --cflags --libs cohort)
if(NOT output MATCHES "-lcohort .*-lcohort_data .*-ltorch_cpu")
  message(FATAL_ERROR "pkg-config prints: ${output}")
endif()
must(pkg-config --cflags --libs cohort-data)
separate_arguments(flags UNIX_COMMAND "${output}")
must(${PKG_CONFIG_COMPILER} -std=c++20 ${PIPELINE}/main.cc -o ${WORK}/by_pkg_config ${flags}
     -Wl,-rpath,${library_folder})
must_be_alone(${WORK}/by_pkg_config)

# Helpers of our own tests are nobody else's.
file(GLOB_RECURSE headers RELATIVE ${WORK}/prefix/include ${WORK}/prefix/include/*.h)
foreach(header IN LISTS headers)
  if(header MATCHES "test" AND NOT header MATCHES "^cohort/testing/")
    message(FATAL_ERROR "${header} was installed")
  endif()
endforeach()

# A program must keep the soname, and with it the interface, that it was linked with.
string(REGEX REPLACE "^([0-9]+\\.[0-9]+).*" "\\1" soversion ${VERSION})
foreach(name cohort cohort_data)
  file(GLOB_RECURSE library ${WORK}/prefix/lib${name}.so.${soversion})
  if(NOT library)
    message(FATAL_ERROR "no lib${name}.so.${soversion} was installed")
  endif()
endforeach()

# What another minor version was asked for must not be found.
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/other -G Ninja -DWANTED=99.0
          -DCMAKE_PREFIX_PATH=${WORK}/prefix
  RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
if(status EQUAL 0)
  message(FATAL_ERROR "find_package(cohort 99.0) found version ${VERSION}")
endif()

# A root that holds no libtorch is an error, not a reason to take another one; in the same folder the
# right one is found afterwards.
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${PIPELINE} -B ${WORK}/pipeline -DLibtorch_ROOT=${WORK}/nowhere
  RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE errors)
if(status EQUAL 0 OR NOT errors MATCHES "${WORK}/nowhere" OR NOT errors MATCHES "DLibtorch_ROOT=DIR")
  message(FATAL_ERROR "with a Libtorch_ROOT that is not there: ${status} ${errors}")
endif()
must(${CMAKE_COMMAND} -S ${PIPELINE} -B ${WORK}/pipeline -DLibtorch_ROOT=${Libtorch_ROOT})

# With the sources in a project there are no tests and tools of ours. To compile them again would
# take minutes: one source of the project shows that it finds the headers.
must(${CMAKE_COMMAND} -S ${SUBPROJECT} -B ${WORK}/sub -G Ninja -DCOHORT=${COHORT}
     -DCMAKE_CXX_COMPILER=${COMPILER} -DLibtorch_ROOT=${Libtorch_ROOT})
must(${CMAKE_COMMAND} --build ${WORK}/sub --target CMakeFiles/job_test.dir${SOURCE}/job_test.cc.o)
must(ninja -C ${WORK}/sub -t targets all)
if(output MATCHES "bin/demo|keras_test|cohort_command")
  message(FATAL_ERROR "a project with Cohort's sources builds its examples, tests or tools, too")
endif()
