# What users link: cohort::cohort, and for pipelines alone cohort::data, which cohort::cohort links in
# turn, so that a program may use both. Their headers need libtorch and nothing else; what our sources
# use besides stays private to them.
#
# cohort::cohort exports what COHORT_API marks. cohort::data exports all names of ours, since
# cohort::cohort uses what is internal, too; <cohort/data.h> says what of it is public.
function(cohort_shared_library name property)
  get_property(folders GLOBAL PROPERTY ${property}_LIBRARIES)
  get_property(deps GLOBAL PROPERTY ${property}_LIBRARY_DEPS)
  list(REMOVE_DUPLICATES deps)
  list(TRANSFORM folders REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)

  add_library(${name} SHARED ${objects})
  # While the major version is 0, a minor release may change the binary interface.
  set_target_properties(
    ${name} PROPERTIES VERSION ${PROJECT_VERSION}
                       SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                       LINKER_LANGUAGE CXX)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(
    ${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                   $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                   $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PUBLIC Libtorch::Libtorch Threads::Threads
                                PRIVATE ${deps} ${cohort_sanitizers})
endfunction()

# The folder's own library, of data sets, is cohort_datasets.
cohort_shared_library(cohort_data COHORT_DATA)
add_library(cohort::data ALIAS cohort_data)
set_target_properties(cohort_data PROPERTIES EXPORT_NAME data
                                             LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/data_exports.map)
target_link_options(cohort_data PRIVATE LINKER:-Bsymbolic-functions
                    LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/data_exports.map)

cohort_shared_library(cohort COHORT)
add_library(cohort::cohort ALIAS cohort)
target_link_libraries(cohort PUBLIC cohort_data)
# An installed libcohort finds the other one beside itself, wherever the folder is moved to.
set_target_properties(cohort PROPERTIES INSTALL_RPATH $ORIGIN)

# The same folders as archives, for tests of many folders that look at what it does not export.
get_property(cohort_all_folders GLOBAL PROPERTY COHORT_LIBRARIES)
add_library(cohort_folders INTERFACE)
target_link_libraries(cohort_folders INTERFACE ${cohort_all_folders})

# For programs of ours that use it; users' have no such header.
if(COHORT_PRECOMPILED_HEADERS)
  add_executable(cohort_precompiled_user EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cc)
  target_link_libraries(cohort_precompiled_user PRIVATE cohort_private_options cohort::cohort)
  target_precompile_headers(cohort_precompiled_user PRIVATE <cohort/cohort.h>)
endif()
