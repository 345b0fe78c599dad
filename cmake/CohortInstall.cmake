# cmake --install: what find_package(cohort) and pkg-config read, the shared libraries and their
# headers, and of the command `cohort` and cohort::testing what was built. The target cohort_package
# builds all of it. The components runtime, development and command are Debian packages' contents.
include(CMakePackageConfigHelpers)

set(cohort_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cohort)
install(TARGETS cohort_data EXPORT cohortDataTargets
        LIBRARY COMPONENT runtime NAMELINK_COMPONENT development)
install(TARGETS cohort EXPORT cohortTargets
        LIBRARY COMPONENT runtime NAMELINK_COMPONENT development)
# With targets of their own, which cohortConfig.cmake leaves out where they were not built.
foreach(name testing testing_archive testing_alloc)
  set_target_properties(cohort_${name} PROPERTIES EXPORT_NAME ${name})
endforeach()
install(TARGETS cohort_testing cohort_testing_archive EXPORT cohortTestingTargets OPTIONAL
        ARCHIVE COMPONENT development)
install(TARGETS cohort_testing_alloc EXPORT cohortTestingAllocTargets OPTIONAL
        ARCHIVE COMPONENT development)
foreach(exported cohort cohortData cohortTesting cohortTestingAlloc)
  install(EXPORT ${exported}Targets NAMESPACE cohort:: DESTINATION ${cohort_cmake_dir}
          COMPONENT development)
endforeach()

add_custom_target(cohort_package DEPENDS cohort cohort_testing_archive cohort_testing_alloc)
if(TARGET cohort_command)
  install(TARGETS cohort_command OPTIONAL RUNTIME COMPONENT command)
  add_dependencies(cohort_package cohort_command)
endif()

install(CODE "set(cohort_include_dirs \"${PROJECT_SOURCE_DIR}\" \"${PROJECT_BINARY_DIR}/include\")
set(cohort_install_dir \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")"
        COMPONENT development)
install(SCRIPT cmake/InstallHeaders.cmake COMPONENT development)

configure_package_config_file(cmake/cohortConfig.cmake.in cohortConfig.cmake
                              INSTALL_DESTINATION ${cohort_cmake_dir}
                              PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(cohortConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cohortConfig.cmake
              ${PROJECT_BINARY_DIR}/cohortConfigVersion.cmake cmake/FindLibtorch.cmake
              cmake/CohortPrecompile.cmake
        DESTINATION ${cohort_cmake_dir} COMPONENT development)

include(CohortPkgConfig)
include(CohortDebian)
