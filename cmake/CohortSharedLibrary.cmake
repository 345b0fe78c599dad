# cohort::cohort, what users link: one shared library of all folders, which exports what COHORT_API
# marks. Its headers need libtorch and nothing else; what our sources use besides stays private to it.
get_property(cohort_folders GLOBAL PROPERTY COHORT_LIBRARIES)
get_property(cohort_folder_deps GLOBAL PROPERTY COHORT_LIBRARY_DEPS)
list(REMOVE_DUPLICATES cohort_folder_deps)
list(TRANSFORM cohort_folders REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE cohort_objects)

add_library(cohort SHARED ${cohort_objects})
add_library(cohort::cohort ALIAS cohort)
# While the major version is 0, a minor release may change the binary interface.
set_target_properties(
  cohort PROPERTIES VERSION ${PROJECT_VERSION}
                    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(cohort PUBLIC cxx_std_20)
target_include_directories(
  cohort PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(cohort PUBLIC Libtorch::Libtorch Threads::Threads
                             PRIVATE ${cohort_folder_deps} ${cohort_sanitizers})
set_property(TARGET cohort PROPERTY LINKER_LANGUAGE CXX)

# The same folders as archives, for tests of many folders that look at what it does not export.
add_library(cohort_folders INTERFACE)
target_link_libraries(cohort_folders INTERFACE ${cohort_folders})

# For programs of ours that use it; users' have no such header.
if(COHORT_PRECOMPILED_HEADERS)
  add_executable(cohort_precompiled_user EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cc)
  target_link_libraries(cohort_precompiled_user PRIVATE cohort_private_options cohort::cohort)
  target_precompile_headers(cohort_precompiled_user PRIVATE <cohort/cohort.h>)
endif()
