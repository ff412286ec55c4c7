/* Makes writes of a folder fail: preloaded into a process, it counts the calls that change files below one folder and
 * fails the one whose turn it is. All processes share one control block, so that workers count along.
 *
 * What goes through libc's entry points is reached: Python, torch's C++ writer, libpng. Processes that call the kernel
 * themselves (Go) are not.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* The layout that faults.py writes. */
struct control {
    _Atomic uint64_t count; /* calls so far */
    uint64_t first, last;   /* the calls that fail, counted from 1; 0 fails none */
    uint64_t code;          /* errno, or 0: a write that takes half and says so */
    _Atomic uint64_t failed;
    char root[1024];        /* the folder, absolute; empty: none */
    char what[1024];        /* the first call that failed */
    char writes[65536];     /* 1 where a call writes, and so can take half */
};

static struct control *control;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("LCD_FAULTS");
    int handle = path ? open(path, O_RDWR) : -1;
    if (handle < 0) return;
    void *found = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    close(handle);
    if (found != MAP_FAILED) control = found;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int inside(const char *path) {
    size_t length = strlen(control->root);
    return length && !strncmp(path, control->root, length) && (path[length] == '/' || !path[length]);
}

static int of_handle(int handle, char *path) {
    char link[64];
    int kept = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    errno = kept;
    path[length > 0 ? length : 0] = 0;
    return length > 0;
}

/* The absolute path of a name below an open folder. */
static void of_name(int folder, const char *name, char *path) {
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return;
    }
    char start[PATH_MAX] = "";
    if (folder == AT_FDCWD) {
        if (!getcwd(start, sizeof start)) start[0] = 0;
    } else {
        of_handle(folder, start);
    }
    if (snprintf(path, PATH_MAX, "%s/%s", start, name) >= PATH_MAX) path[0] = 0;
}

/* Is it this call's turn? A call that needs no room still works on a full disk. */
static int fails(const char *call, const char *path, int needs_room, int writes) {
    if (!control || !control->root[0] || !inside(path)) return 0;
    uint64_t number = atomic_fetch_add(&control->count, 1) + 1;
    if (number < sizeof control->writes) control->writes[number] = writes;
    if (number < control->first || number > control->last || !control->first) return 0;
    if (control->code == ENOSPC && !needs_room) return 0;
    if (atomic_fetch_add(&control->failed, 1) == 0)
        snprintf(control->what, sizeof control->what, "call %lu: %s %.900s", (unsigned long)number, call, path);
    return 1;
}

static int refused(void) {
    if (!control->code) return 0;
    errno = (int)control->code;
    return 1;
}

static int named(const char *call, int folder, const char *name, int needs_room) {
    char path[PATH_MAX];
    if (!control || !control->root[0]) return 0;
    of_name(folder, name, path);
    return fails(call, path, needs_room, 0) && refused();
}

static int opened(const char *call, int folder, const char *name, int flags) {
    struct stat found;
    if ((flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_TRUNC))) return 0;
    return named(call, folder, name, (flags & O_CREAT) && fstatat(folder, name, &found, 0) != 0);
}

/* 0: go on; 1: fail; 2: take half. */
static int written(const char *call, int handle, size_t size) {
    char path[PATH_MAX];
    if (!control || !control->root[0] || !of_handle(handle, path)) return 0;
    if (!fails(call, path, 1, size > 1)) return 0;
    if (refused()) return 1;
    return size > 1 ? 2 : 0;
}

#define MODE(flags, last)                              \
    mode_t mode = 0;                                   \
    if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) { \
        va_list rest;                                  \
        va_start(rest, last);                          \
        mode = va_arg(rest, mode_t);                   \
        va_end(rest);                                  \
    }

#define OPEN(name)                                                       \
    int name(const char *path, int flags, ...) {                         \
        MODE(flags, flags)                                               \
        if (opened("open", AT_FDCWD, path, flags)) return -1;            \
        return REAL(name)(path, flags, mode);                            \
    }
#define OPENAT(name)                                                     \
    int name(int folder, const char *path, int flags, ...) {             \
        MODE(flags, flags)                                               \
        if (opened("open", folder, path, flags)) return -1;              \
        return REAL(name)(folder, path, flags, mode);                    \
    }
#define FOPEN(name)                                                      \
    FILE *name(const char *path, const char *mode) {                     \
        int flags = strchr(mode, 'w') || strchr(mode, 'a') ? O_WRONLY | O_CREAT : strchr(mode, '+') ? O_RDWR : O_RDONLY; \
        if (opened("fopen", AT_FDCWD, path, flags)) return NULL;         \
        return REAL(name)(path, mode);                                   \
    }
#define PWRITE(name, offset_t)                                           \
    ssize_t name(int handle, const void *data, size_t size, offset_t at) { \
        int how = written("pwrite", handle, size);                       \
        if (how == 1) return -1;                                         \
        return REAL(name)(handle, data, how == 2 ? size / 2 : size, at); \
    }
#define SYNC(name)                                                       \
    int name(int handle) {                                               \
        if (written(#name, handle, 0) == 1) return -1;                   \
        return REAL(name)(handle);                                       \
    }
#define TRUNCATE(name, offset_t)                                         \
    int name(int handle, offset_t size) {                                \
        if (written("truncate", handle, 0) == 1) return -1;              \
        return REAL(name)(handle, size);                                 \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
FOPEN(fopen)
FOPEN(fopen64)
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)
SYNC(fsync)
SYNC(fdatasync)
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

ssize_t write(int handle, const void *data, size_t size) {
    int how = written("write", handle, size);
    if (how == 1) return -1;
    return REAL(write)(handle, data, how == 2 ? size / 2 : size);
}

ssize_t writev(int handle, const struct iovec *parts, int count) {
    int how = written("writev", handle, count > 1 ? 2 : 0);
    if (how == 1) return -1;
    return REAL(writev)(handle, parts, how == 2 ? 1 : count);
}

int mkdir(const char *path, mode_t mode) {
    return named("mkdir", AT_FDCWD, path, 1) ? -1 : REAL(mkdir)(path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode) {
    return named("mkdir", folder, path, 1) ? -1 : REAL(mkdirat)(folder, path, mode);
}

int rename(const char *from, const char *to) {
    return named("rename to", AT_FDCWD, to, 0) ? -1 : REAL(rename)(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return named("rename to", to_folder, to, 0) ? -1 : REAL(renameat)(from_folder, from, to_folder, to);
}

int unlink(const char *path) { return named("unlink", AT_FDCWD, path, 0) ? -1 : REAL(unlink)(path); }

int unlinkat(int folder, const char *path, int flags) {
    return named("unlink", folder, path, 0) ? -1 : REAL(unlinkat)(folder, path, flags);
}

int rmdir(const char *path) { return named("rmdir", AT_FDCWD, path, 0) ? -1 : REAL(rmdir)(path); }

int chmod(const char *path, mode_t mode) { return named("chmod", AT_FDCWD, path, 0) ? -1 : REAL(chmod)(path, mode); }

int fchmod(int handle, mode_t mode) {
    return written("chmod", handle, 0) == 1 ? -1 : REAL(fchmod)(handle, mode);
}

int symlink(const char *to, const char *path) {
    return named("symlink", AT_FDCWD, path, 1) ? -1 : REAL(symlink)(to, path);
}

int link(const char *from, const char *path) { return named("link", AT_FDCWD, path, 1) ? -1 : REAL(link)(from, path); }
