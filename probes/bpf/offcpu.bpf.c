// Off-CPU time of the target's threads, by operator and cause.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";
