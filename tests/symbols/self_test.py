"""The check of bindings must fail on a planted one, or a clean report would mean nothing."""

import unittest

import bindings

TORCH, DNNL, OURS = "/w/libtorch_cpu.so", "/usr/lib/libdnnl.so.2", "/b/libcohort.so.0.1"
NAMES = {
    "once": "std::once_flag::_Prepare_execution::_Prepare_execution<std::call_once<dnnl::impl::jit"
            "<float>::init()::{lambda()#1}>(std::once_flag&)>::{lambda()#1}::_FUN()",
    "set": "std::_Hashtable<dnnl_data_type_t, dnnl_data_type_t, std::allocator<dnnl_data_type_t> >"
           "::find(dnnl_data_type_t const&)",
    "vector": "void std::vector<int, std::allocator<int> >::_M_realloc_insert<int const&>("
              "__gnu_cxx::__normal_iterator<int*, std::vector<int, std::allocator<int> > >, int&&)",
    "info": "typeinfo name for void (*)(std::__cxx11::basic_string<char> const&)",
    "tensors": "std::vector<at::Tensor, std::allocator<at::Tensor> >::~vector()",
    "crc": "crc32",
}


def line(source, target, name):
    return f"      77:\tbinding file {source} [0] to {target} [0]: normal symbol `{name}' [V_1]\n"


def found(*lines, beside=()):
    return bindings.offences(bindings.crossings("".join(lines)), {TORCH}, set(beside),
                             lambda file: set(NAMES), NAMES.__getitem__, {OURS})


class PlantedOffences(unittest.TestCase):
    def test_templates_of_a_librarys_own_types(self):
        for name in ("once", "set", "crc"):
            self.assertEqual(len(found(line(DNNL, TORCH, name))), 1)
            self.assertEqual(len(found(line(TORCH, DNNL, name))), 1)
            self.assertEqual(len(found(line(OURS, TORCH, name))), 1)

    def test_the_standard_librarys_are_harmless(self):
        for name in ("vector", "info"):
            self.assertEqual(found(line(DNNL, TORCH, name), line(TORCH, OURS, name)), [])

    def test_what_our_sources_compile_of_libtorch_is_harmless(self):
        self.assertEqual(found(line(OURS, TORCH, "tensors"), line(TORCH, OURS, "tensors")), [])
        self.assertEqual(len(found(line(DNNL, TORCH, "tensors"))), 1)

    def test_a_library_that_libtorch_is_linked_with_is_the_only_one(self):
        self.assertEqual(found(line(DNNL, TORCH, "once"), beside=[DNNL]), [])

    def test_others_are_not_libtorch(self):
        self.assertEqual(found(line(DNNL, OURS, "once"), line(DNNL, DNNL, "once")), [])


if __name__ == "__main__":
    unittest.main()
