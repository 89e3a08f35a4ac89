/* A disk that is full while a file exists: preloaded into one server, it refuses writes behind the end of a file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int refuses(int file, off_t end) {
    const char *full = getenv("LEASEHOLD_RIG_FULL");
    struct stat seen;
    return full && !access(full, F_OK) && !fstat(file, &seen) && S_ISREG(seen.st_mode) && end > seen.st_size;
}

/* The rest by other means than the function that is replaced. */
static ssize_t write_at(int file, const struct iovec *parts, int count, off_t at) {
    off_t end = at;
    for (int n = 0; n < count; n++) end += (off_t)parts[n].iov_len;
    if (refuses(file, end)) {
        errno = ENOSPC;
        return -1;
    }
    return pwritev2(file, parts, count, at, 0);
}

static ssize_t write_one(int file, const void *bytes, size_t length, off_t at) {
    struct iovec part = {(void *)bytes, length};
    return write_at(file, &part, 1, at);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) { return write_one(file, bytes, length, at); }
ssize_t pwrite64(int file, const void *bytes, size_t length, off_t at) { return write_one(file, bytes, length, at); }
ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) { return write_at(file, parts, count, at); }
ssize_t pwritev64(int file, const struct iovec *parts, int count, off_t at) { return write_at(file, parts, count, at); }

int posix_fallocate(int file, off_t at, off_t length) {
    if (refuses(file, at + length)) return ENOSPC;
    return fallocate(file, 0, at, length) ? errno : 0;
}
int posix_fallocate64(int file, off_t at, off_t length) { return posix_fallocate(file, at, length); }
