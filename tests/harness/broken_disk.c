/* Loaded before the C library's own: system calls on the files of a ledger fail on demand.
 *
 * disk_breaks(call, nth, error, lasting) lets the nth call of that kind fail with the error number, and all later
 * ones too if `lasting`; disk_heals() ends it and says how many calls failed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { WRITE, SYNC, READ, TRUNCATE };

static int broken_call = -1, broken_error, broken_lasting;
static long countdown, failed;

void disk_breaks(int call, long nth, int error, int lasting) {
    broken_call = call, countdown = nth, broken_error = error, broken_lasting = lasting, failed = 0;
}

long disk_heals(void) {
    broken_call = -1;
    return failed;
}

static int of_a_ledger(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, "ledger.sqlite") != NULL;
}

static int fails(int call, int file) {
    if (call != broken_call || !of_a_ledger(file)) return 0;
    countdown -= 1;
    if (countdown > 0 || (countdown < 0 && !broken_lasting)) return 0;
    failed += 1;
    errno = broken_error;
    return 1;
}

#define REAL(result, name, ...) ((result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

#define WRITES(name, offset_type)                                                                  \
    ssize_t name(int file, const void *bytes, size_t size, offset_type place) {                    \
        if (fails(WRITE, file)) return -1;                                                         \
        return REAL(ssize_t, name, int, const void *, size_t, offset_type)(file, bytes, size, place); \
    }
#define READS(name, offset_type)                                                                   \
    ssize_t name(int file, void *bytes, size_t size, offset_type place) {                          \
        if (fails(READ, file)) return -1;                                                          \
        return REAL(ssize_t, name, int, void *, size_t, offset_type)(file, bytes, size, place);    \
    }
#define SYNCS(name)                                                                                \
    int name(int file) {                                                                           \
        if (fails(SYNC, file)) return -1;                                                          \
        return REAL(int, name, int)(file);                                                         \
    }
#define TRUNCATES(name, offset_type)                                                               \
    int name(int file, offset_type size) {                                                         \
        if (fails(TRUNCATE, file)) return -1;                                                      \
        return REAL(int, name, int, offset_type)(file, size);                                      \
    }

WRITES(pwrite, off_t)
WRITES(pwrite64, off64_t)
READS(pread, off_t)
READS(pread64, off64_t)
SYNCS(fsync)
SYNCS(fdatasync)
TRUNCATES(ftruncate, off_t)
TRUNCATES(ftruncate64, off64_t)

ssize_t write(int file, const void *bytes, size_t size) {
    if (fails(WRITE, file)) return -1;
    return REAL(ssize_t, write, int, const void *, size_t)(file, bytes, size);
}

ssize_t read(int file, void *bytes, size_t size) {
    if (fails(READ, file)) return -1;
    return REAL(ssize_t, read, int, void *, size_t)(file, bytes, size);
}
