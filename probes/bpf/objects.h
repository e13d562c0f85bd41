// The compiled BPF programs of this folder, carried in the executable: name of the .bpf.c file
// (without endings) -> its ELF object as a gzip member. Each is there twice: NAME_loop needs
// bpf_loop (Linux 5.17), and is verified in less time.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>

namespace headrace::probes::bpf {

const std::map<std::string, std::span<const unsigned char>, std::less<>>& Objects();

}  // namespace headrace::probes::bpf
