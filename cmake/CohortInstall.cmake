# cmake --install: the shared library, the headers, and what find_package(cohort) reads.
include(CMakePackageConfigHelpers)

set(cohort_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cohort)

install(TARGETS cohort EXPORT cohortTargets)
install(EXPORT cohortTargets NAMESPACE cohort:: DESTINATION ${cohort_cmake_dir})

install(DIRECTORY ${PROJECT_SOURCE_DIR}/cohort ${PROJECT_BINARY_DIR}/include/cohort
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

configure_package_config_file(cmake/cohortConfig.cmake.in cohortConfig.cmake
                              INSTALL_DESTINATION ${cohort_cmake_dir})
write_basic_package_version_file(cohortConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cohortConfig.cmake
              ${PROJECT_BINARY_DIR}/cohortConfigVersion.cmake cmake/FindLibtorch.cmake
        DESTINATION ${cohort_cmake_dir})
