// A libnvidia-ml.so.1 for tests, with devices that are as the environment says:
//   FAKE_NVML_BUSY   per cent, one number a device: "29 96"
//   FAKE_NVML_PIDS   a file with a line for each process that computes: "DEVICE PID"; not set: the
//                    driver does not tell
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  unsigned int gpu, memory;
} Utilization;
typedef struct {
  unsigned int pid;
  unsigned long long memory;
  unsigned int gpu_instance, compute_instance;
} ProcessInfo;

enum { OK = 0, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, MOST = 16 };

static unsigned int busy[MOST];
static unsigned long devices;

int nvmlInit_v2(void) {
  const char* text = getenv("FAKE_NVML_BUSY");
  char* end;
  for (devices = 0; text != NULL && devices < MOST; ++devices, text = end) {
    busy[devices] = (unsigned int)strtoul(text, &end, 10);
    if (end == text) break;
  }
  return OK;
}
int nvmlShutdown(void) { return OK; }
const char* nvmlErrorString(int error) { return error == OK ? "Success" : "Not Supported"; }
int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = (unsigned int)devices;
  return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  *device = &busy[index];
  return OK;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* use) {
  use->gpu = *(unsigned int*)device;
  use->memory = use->gpu / 2;
  return OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned int* count, ProcessInfo* infos) {
  const char* path = getenv("FAKE_NVML_PIDS");
  if (path == NULL) return NOT_SUPPORTED;
  FILE* file = fopen(path, "r");
  const unsigned int room = *count;
  unsigned int index, pid;
  *count = 0;
  while (file != NULL && fscanf(file, "%u %u", &index, &pid) == 2) {
    if (&busy[index] != device) continue;
    if (*count < room) infos[*count] = (ProcessInfo){pid, 1 << 20, 0, 0};
    ++*count;
  }
  if (file != NULL) fclose(file);
  return *count > room ? INSUFFICIENT_SIZE : OK;
}
