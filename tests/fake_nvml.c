/* A driver's library for machines without a GPU: two GPUs, one process on the first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } memory2_t;
typedef struct { unsigned int gpu, memory; } rates_t;
typedef struct { unsigned int pid; unsigned long long used; unsigned int gi, ci; } process_t;
typedef struct {
    unsigned int pid; unsigned long long when; unsigned int sm, memory, encoder, decoder;
} share_t;

static unsigned int someone(void) {
    const char *text = getenv("FAKE_GPU_PID");
    if (text) return (unsigned int)atoi(text);
    unsigned int pid = 0;
    FILE *file = getenv("FAKE_GPU_PID_FILE") ? fopen(getenv("FAKE_GPU_PID_FILE"), "r") : NULL;
    if (file) {
        if (fscanf(file, "%u", &pid) != 1) pid = 0;
        fclose(file);
    }
    return pid;
}

int nvmlInit_v2(void) { return getenv("FAKE_GPU_BROKEN") ? 9 : 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
    *handle = (void *)(size_t)(index + 1);
    return 0;
}
int nvmlDeviceGetName(void *handle, char *name, unsigned int size) {
    strncpy(name, "Fake H0", size);
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *handle, memory_t *memory) {
    memory->total = 80ull << 30;
    memory->used = handle == (void *)1 ? 12ull << 30 : 0;
    memory->free = memory->total - memory->used;
    return 0;
}
int nvmlDeviceGetMemoryInfo_v2(void *handle, memory2_t *memory) {
    memory_t older;
    if (memory->version != (sizeof *memory | 2 << 24)) return 25;
    nvmlDeviceGetMemoryInfo(handle, &older);
    memory->total = older.total;
    memory->used = older.used;
    memory->free = older.free - (memory->reserved = 1ull << 29);
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *handle, rates_t *rates) {
    rates->gpu = handle == (void *)1 ? 97 : 0;
    rates->memory = 5;
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned int *count, process_t *found) {
    unsigned int wanted = handle == (void *)1 && someone() ? 20 : 0;
    if (*count < wanted) { *count = wanted; return 7; } /* more than there is room for, at first */
    *count = wanted;
    for (unsigned int i = 0; i < wanted; i++) {
        found[i].pid = i ? 4000000 + i : someone();
        found[i].used = i == 1 ? ~0ull : (unsigned long long)(i ? 0 : 11) << 30;
        found[i].gi = found[i].ci = 0;
    }
    return 0;
}
int nvmlDeviceGetProcessUtilization(
    void *handle, share_t *shares, unsigned int *count, unsigned long long since
) {
    if (handle != (void *)1 || !someone()) return 6;
    if (!shares) { *count = 2; return 7; }
    *count = 2;
    for (unsigned int i = 0; i < 2; i++) {
        memset(&shares[i], 0, sizeof shares[i]);
        shares[i].pid = someone();
        shares[i].when = 100 + i;
        shares[i].sm = i ? 88 : 12;
    }
    return 0;
}
