// What this kernel and this process's privileges allow our BPF programs, in words where they do
// not.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "probes/probe.h"

namespace headrace::probes::bpf {

// Why this process may load no program at all; empty: it may.
std::optional<Availability> MissingPrivilege(const Host& host);

bool HasTracepoint(std::string_view name);
Availability NoTracepoint(std::string_view hooks);

// The object built from the .bpf.c file of that name, in the form that this kernel can run: with
// its loop helper where it has one.
std::span<const unsigned char> ObjectOf(const std::string& name);

// From here on libbpf's complaints of this thread are collected, for LoadFailure.
void CollectLibbpfLog();
// What kept an object from being loaded: the errno, the program that libbpf complained of, and what
// would change it.
Availability LoadFailure(int error, const std::string& object);

}  // namespace headrace::probes::bpf
