/* Process 1 of the guests: sets the machine up, runs the commands of /guest/commands, says on the
 * console how each ended, and switches the machine off.
 *
 * A line of /guest/commands is NAME SECONDS PROGRAM [ARGUMENT...], separated by single spaces. Its
 * output is between "@begin NAME" and "@end NAME STATUS MILLISECONDS"; STATUS is that of the
 * program, 128 + the signal that ended it, or 124 when it took longer than SECONDS.
 * /guest/disk, if there, names the folder where the first virtual disk is mounted. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/reboot.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void Say(const char* what, const char* about) {
  printf("@guest %s %s: %s\n", what, about, strerror(errno));
}

static void Mount(const char* source, const char* folder, const char* type) {
  mkdir(folder, 0755);
  if (mount(source, folder, type, 0, NULL) != 0) Say("mount", folder);
}

static void LoadModules(void) {
  struct dirent** names;
  const int count = scandir("/guest/modules", &names, NULL, alphasort);
  for (int i = 0; i < count; i++) {
    if (names[i]->d_name[0] == '.') continue;
    char path[512];
    snprintf(path, sizeof path, "/guest/modules/%s", names[i]->d_name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) != 0 && errno != EEXIST)) {
      Say("module", path);
    }
    if (fd >= 0) close(fd);
  }
}

static void MountDisk(void) {
  FILE* file = fopen("/guest/disk", "r");
  if (!file) return;
  char folder[512] = "";
  if (fgets(folder, sizeof folder, file)) folder[strcspn(folder, "\n")] = 0;
  fclose(file);
  for (int i = 0; i < 200 && access("/dev/vda", F_OK) != 0; i++) usleep(50000);
  for (char* at = folder + 1; (at = strchr(at, '/')) != NULL; at++) {
    *at = 0;
    mkdir(folder, 0755);
    *at = '/';
  }
  Mount("/dev/vda", folder, "ext4");
  chmod(folder, 01777);
}

static void LoopbackUp(void) {
  struct ifreq request;
  memset(&request, 0, sizeof request);
  strcpy(request.ifr_name, "lo");
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0) Say("network", "lo");
  if (fd >= 0) close(fd);
}

static long long Milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void Run(char* line) {
  char* arguments[64];
  int count = 0;
  for (char* word = strtok(line, " \n"); word && count < 63; word = strtok(NULL, " \n")) {
    arguments[count++] = word;
  }
  arguments[count] = NULL;
  if (count < 3) return;
  printf("@begin %s\n", arguments[0]);
  const long long begin = Milliseconds(), limit = atoll(arguments[1]) * 1000;
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    execvp(arguments[2], arguments + 2);
    Say("exec", arguments[2]);
    _exit(127);
  }
  int status = 0, code = -1;
  for (;;) {
    const pid_t ended = waitpid(-1, &status, WNOHANG); /* orphans come to process 1 too */
    if (ended == child) {
      code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      break;
    }
    if (ended > 0) continue;
    if (Milliseconds() - begin > limit) {
      kill(-child, SIGKILL);
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
      code = 124;
      break;
    }
    usleep(2000);
  }
  printf("\n@end %s %d %lld\n", arguments[0], code, Milliseconds() - begin);
}

int main(void) {
  setvbuf(stdout, NULL, _IONBF, 0);
  Mount("proc", "/proc", "proc");
  Mount("sysfs", "/sys", "sysfs");
  Mount("dev", "/dev", "devtmpfs");
  mkdir("/tmp", 0755);
  Mount("shm", "/dev/shm", "tmpfs");
  Mount("cgroup2", "/sys/fs/cgroup", "cgroup2");
  chmod("/tmp", 01777);
  chmod("/dev/shm", 01777);
  symlink("/proc/self/fd", "/dev/fd");
  LoadModules();
  MountDisk();
  LoopbackUp();
  setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
  setenv("HOME", "/tmp", 1);
  printf("\n@guest ready after %lld ms\n", Milliseconds());
  FILE* file = fopen("/guest/commands", "re");
  char line[4096];
  while (file && fgets(line, sizeof line, file)) Run(line);
  printf("@guest end\n");
  sync();
  reboot(LINUX_REBOOT_CMD_POWER_OFF);
  for (;;) pause();
}
