/* A driver's library without a GPU: the memory of its devices lies in a file that all processes
   share, and what a process had is free again when it is gone, as with the real one. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#define USERS 64
#define BLOCKS 4096
enum { OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101 };

struct user { int64_t pid, bytes; };
struct device {
    int64_t total, tenant, context, largest, mode, integrated;
    int64_t race_bytes, race_left;
    struct user users[USERS];
};
struct state { int64_t count; struct device devices[8]; };

static struct state *all;
static int file = -1, current = -1, visible[8], shown, forked_from;
static struct { int64_t size; int device; } blocks[BLOCKS];

static void lock(void) { flock(file, LOCK_EX); }
static void unlock(void) { flock(file, LOCK_UN); }

static int is_gone(int64_t pid) {
    char path[64], text[256], *end;
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0) return 1;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size <= 0) return 1;
    text[size] = 0;
    end = strrchr(text, ')');
    return !end || end[2] == 'Z' || end[2] == 'X';
}

static int64_t used_by(struct device *device, int64_t pid, int64_t more) {
    struct user *mine = NULL;
    for (int i = 0; i < USERS; i++) {
        struct user *one = &device->users[i];
        if (one->pid == pid) { mine = one; break; }
        if (!mine && (!one->pid || is_gone(one->pid))) mine = one;
    }
    if (mine->pid != pid) { mine->pid = pid; mine->bytes = 0; }
    return mine->bytes += more;
}

static int64_t free_of(struct device *device) {
    int64_t used = device->tenant;
    for (int i = 0; i < USERS; i++)
        if (device->users[i].pid && !is_gone(device->users[i].pid)) used += device->users[i].bytes;
    return device->total - used;
}

/* Somebody else takes so much, and frees it the next time: so often, or for ever. */
static void race(struct device *one) {
    one->tenant += one->race_left % 2 ? -one->race_bytes : one->race_bytes;
    if (one->race_left > 0) one->race_left--;
    else one->race_left = one->race_left == -1 ? -2 : -1;
}

int cuInit(unsigned flags) {
    const char *path = getenv("FAKE_CUDA"), *hidden = getenv("CUDA_VISIBLE_DEVICES");
    if (!path || (file = open(path, O_RDWR | O_CLOEXEC)) < 0) return NO_DEVICE;
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (shown = 0; !hidden && shown < all->count; shown++) visible[shown] = shown;
    for (const char *at = hidden; at && *at; at++) {
        char *end;
        long number = strtol(at, &end, 10);
        if (end == at || number < 0 || number >= all->count) break;
        visible[shown++] = (int)number;
        at = end;
        if (!*at) break;
    }
    forked_from = getpid();
    return shown ? 0 : NO_DEVICE;
}

#define CHECK if (!all || forked_from != getpid()) return NOT_INITIALIZED

int cuDeviceGetCount(int *count) { CHECK; *count = shown; return 0; }
int cuDeviceGet(int *device, int number) {
    CHECK;
    if (number < 0 || number >= shown) return INVALID_DEVICE;
    *device = visible[number];
    return 0;
}
int cuDeviceGetName(char *name, int size, int device) {
    snprintf(name, size, "Fake %d", device);
    return 0;
}
int cuDeviceTotalMem_v2(size_t *size, int device) { *size = all->devices[device].total; return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) {
    struct device *one = &all->devices[device];
    *value = which == 18 ? (int)one->integrated : which == 20 ? (int)one->mode : 0;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
    CHECK;
    struct device *one = &all->devices[device];
    int code = 0;
    lock();
    if (one->context > free_of(one)) code = OUT_OF_MEMORY;
    else used_by(one, getpid(), one->context);
    unlock();
    *context = (void *)(intptr_t)(device + 1);
    return code;
}
int cuCtxSetCurrent(void *context) { current = (int)(intptr_t)context - 1; return 0; }
int cuMemGetInfo_v2(size_t *free, size_t *total) {
    CHECK;
    lock();
    if (all->devices[current].race_left < 0) race(&all->devices[current]);
    *free = free_of(&all->devices[current]);
    *total = all->devices[current].total;
    unlock();
    return 0;
}
int cuMemAlloc_v2(uint64_t *where, size_t size) {
    CHECK;
    struct device *one = &all->devices[current];
    int code = OUT_OF_MEMORY;
    lock();
    if (one->race_left) race(one);
    if ((int64_t)size <= free_of(one) && (int64_t)size <= one->largest)
        for (int i = 0; i < BLOCKS && code; i++)
            if (!blocks[i].size) {
                blocks[i].size = size;
                blocks[i].device = current;
                used_by(one, getpid(), size);
                *where = i + 1;
                code = 0;
            }
    unlock();
    return code;
}
int cuMemFree_v2(uint64_t where) {
    lock();
    used_by(&all->devices[blocks[where - 1].device], getpid(), -blocks[where - 1].size);
    blocks[where - 1].size = 0;
    unlock();
    return 0;
}
int cuGetErrorName(int code, const char **name) {
    *name = code == OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : code == NOT_INITIALIZED ? "CUDA_ERROR_NOT_INITIALIZED"
            : code == NO_DEVICE       ? "CUDA_ERROR_NO_DEVICE"
                                      : "CUDA_ERROR_INVALID_DEVICE";
    return 0;
}
