// A disk that fails, for one process: from call number `fail_from` on, every call to a file below DISK_ROOT gives EIO.
// Loaded by LD_PRELOAD; failing-disk.ts compiles it, reads how many calls there were, and says from which on they fail.
//
// DISK_STATE, a file of 16 bytes that both map:   calls u64 | fail_from u64 (0: never)

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS_MAX 65536

struct state {
  unsigned long calls;
  unsigned long fail_from;
};

static struct state *state;
static const char *root;
static unsigned char below_root[FDS_MAX];

__attribute__((constructor)) static void map_state(void) {
  const char *path = getenv("DISK_STATE");
  root = getenv("DISK_ROOT");
  if (path == NULL || root == NULL) return;
  int (*real_open)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
  int fd = real_open(path, O_RDWR);
  if (fd < 0) return;
  void *mapped = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped != MAP_FAILED) state = mapped;
}

static int fails(void) {
  unsigned long call = __atomic_add_fetch(&state->calls, 1, __ATOMIC_SEQ_CST);
  unsigned long from = __atomic_load_n(&state->fail_from, __ATOMIC_SEQ_CST);
  if (from == 0 || call < from) return 0;
  errno = EIO;
  return 1;
}

static int path_fails(const char *path) {
  return state != NULL && strncmp(path, root, strlen(root)) == 0 && fails();
}

static int fd_fails(int fd) {
  return state != NULL && fd >= 0 && fd < FDS_MAX && below_root[fd] && fails();
}

static int opened(int fd, const char *path) {
  if (state != NULL && fd >= 0 && fd < FDS_MAX) below_root[fd] = strncmp(path, root, strlen(root)) == 0;
  return fd;
}

#define REAL(name)               \
  static __typeof__(name) *real; \
  if (real == NULL) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define OPEN(name)                                                        \
  int name(const char *path, int flags, ...) {                            \
    REAL(name);                                                           \
    va_list rest;                                                         \
    va_start(rest, flags);                                                \
    int mode = va_arg(rest, int);                                         \
    va_end(rest);                                                         \
    return path_fails(path) ? -1 : opened(real(path, flags, mode), path); \
  }
OPEN(open)
OPEN(open64)

#define ON_FD(type, name, parameters, ...)        \
  type name parameters {                          \
    REAL(name);                                   \
    return fd_fails(fd) ? -1 : real(__VA_ARGS__); \
  }
ON_FD(ssize_t, read, (int fd, void *bytes, size_t count), fd, bytes, count)
ON_FD(ssize_t, write, (int fd, const void *bytes, size_t count), fd, bytes, count)
ON_FD(ssize_t, pread, (int fd, void *bytes, size_t count, off_t at), fd, bytes, count, at)
ON_FD(ssize_t, pread64, (int fd, void *bytes, size_t count, off64_t at), fd, bytes, count, at)
ON_FD(ssize_t, pwrite, (int fd, const void *bytes, size_t count, off_t at), fd, bytes, count, at)
ON_FD(ssize_t, pwrite64, (int fd, const void *bytes, size_t count, off64_t at), fd, bytes, count, at)
ON_FD(ssize_t, readv, (int fd, const struct iovec *pieces, int count), fd, pieces, count)
ON_FD(ssize_t, writev, (int fd, const struct iovec *pieces, int count), fd, pieces, count)
ON_FD(ssize_t, preadv, (int fd, const struct iovec *pieces, int count, off_t at), fd, pieces, count, at)
ON_FD(ssize_t, preadv64, (int fd, const struct iovec *pieces, int count, off64_t at), fd, pieces, count, at)
ON_FD(ssize_t, pwritev, (int fd, const struct iovec *pieces, int count, off_t at), fd, pieces, count, at)
ON_FD(ssize_t, pwritev64, (int fd, const struct iovec *pieces, int count, off64_t at), fd, pieces, count, at)
ON_FD(int, fsync, (int fd), fd)
ON_FD(int, fdatasync, (int fd), fd)
ON_FD(int, ftruncate, (int fd, off_t size), fd, size)
ON_FD(int, ftruncate64, (int fd, off64_t size), fd, size)

#define ON_PATH(name, parameters, ...)                \
  int name parameters {                               \
    REAL(name);                                       \
    return path_fails(path) ? -1 : real(__VA_ARGS__); \
  }
ON_PATH(unlink, (const char *path), path)
ON_PATH(rmdir, (const char *path), path)
ON_PATH(mkdir, (const char *path, mode_t mode), path, mode)
ON_PATH(rename, (const char *path, const char *target), path, target)

int close(int fd) {
  REAL(close);
  if (state != NULL && fd >= 0 && fd < FDS_MAX) below_root[fd] = 0;
  return real(fd);
}
