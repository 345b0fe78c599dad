"""Cohort for conan 2. The system holds its dependencies (packages.txt), since ConanCenter has no
libtorch that Cohort was tried with; Cohort finds them as any build of it does."""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy, load

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")


class Cohort(ConanFile):
    name = "cohort"
    description = "The tf.distribute programming model for C++ on libtorch"
    license = "Apache-2.0"
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"

    def set_version(self):
        text = load(self, os.path.join(ROOT, "CMakeLists.txt"))
        self.version = re.search(r"project\(cohort VERSION ([0-9.]+)", text).group(1)

    def validate(self):
        check_min_cppstd(self, 20)

    def export_sources(self):
        for name in ("CMakeLists.txt", "LICENSE", "cmake/*", "cohort/*", "tools/*"):
            copy(self, name, ROOT, self.export_sources_folder)

    def generate(self):
        toolchain = CMakeToolchain(self, generator="Ninja")
        toolchain.cache_variables.update({"COHORT_BUILD_TESTS": False,
                                          "COHORT_BUILD_EXAMPLES": False})
        toolchain.user_presets_path = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="cohort_package")

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # What was installed says more than conan could: CMake's files and pkg-config's are its own.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "cohort")]
        self.cpp_info.libs = ["cohort", "cohort_data"]
