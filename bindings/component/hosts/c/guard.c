/* What a protected resource does with a token: guard COMPONENT MARK TOKEN.
 *
 * MARK is a file with the highest token that the resource has seen; none is there before the first. A token below it
 * comes from a holder that has lost its lock and does not know yet; it is refused, with status 1. A mark that cannot be
 * read or kept is no missing one: the status is 2 then, as for any mistake, and nothing was claimed. In a real resource
 * the mark changes in one step with the data, which also keeps two claims at once apart; a file does not. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine.h"

/* More than the digits of any token. */
#define MOST_DIGITS 32

/* Digits and nothing else; `strtoull` alone would pass over spaces, signs and whatever follows. */
static bool read_number(const char *word, uint64_t *number) {
    size_t digits = strspn(word, "0123456789");
    errno = 0;
    *number = strtoull(word, NULL, 10);
    return digits > 0 && word[digits] == '\0' && errno == 0;
}

/* Ends the program where there is a mark that cannot be read. */
static value read_mark(const char *name) {
    /* A link would be replaced by the new mark, and what it leads to left as it was. */
    int opened = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0 && errno == ENOENT) {
        return none();
    }
    FILE *file = opened < 0 ? NULL : fdopen(opened, "r");
    char word[MOST_DIGITS + 1] = {0};
    uint64_t seen;
    size_t size = file == NULL ? 0 : fread(word, 1, MOST_DIGITS, file);
    if (file == NULL || ferror(file)) {
        perror(name);
        exit(2);
    }
    fclose(file);
    if (size > 0 && word[size - 1] == '\n') {
        word[--size] = '\0';
    }
    if (strlen(word) != size || !read_number(word, &seen)) {
        fprintf(stderr, "%s: there is no token in it\n", name);
        exit(2);
    }
    return some(u64(seen));
}

/* What is in a folder, and not only in its files, has to reach the disk as well. */
static bool keep_folder_of(const char *name) {
    char folder[PATH_MAX];
    const char *slash = strrchr(name, '/');
    int size = slash == NULL ? 1 : slash == name ? 1 : (int)(slash - name);
    snprintf(folder, sizeof(folder), "%.*s", size, slash == NULL ? "." : name);
    int opened = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_kept = opened >= 0 && fsync(opened) == 0;
    return opened >= 0 && close(opened) == 0 && is_kept;
}

/* Replaces the mark atomically: a reader finds the old mark or the new one, also after a crash, never half of one. */
static bool write_mark(const char *name, uint64_t token) {
    char new_name[PATH_MAX], word[MOST_DIGITS];
    int length = snprintf(new_name, sizeof(new_name), "%s.XXXXXX", name);
    int size = snprintf(word, sizeof(word), "%" PRIu64 "\n", token);
    if (length >= (int)sizeof(new_name)) {
        errno = ENAMETOOLONG;
        return false;
    }
    int file = mkstemp(new_name);
    if (file < 0) {
        return false;
    }
    bool is_written = fchmod(file, 0644) == 0 && write(file, word, (size_t)size) == size && fsync(file) == 0;
    is_written = close(file) == 0 && is_written;
    if (!is_written || rename(new_name, name) != 0) {
        int why = errno;
        unlink(new_name);
        errno = why;
        return false;
    }
    return keep_folder_of(name);
}

int main(int count, char **words) {
    uint64_t token;
    if (count != 4 || !read_number(words[3], &token)) {
        fprintf(stderr, "usage: guard COMPONENT MARK TOKEN\n");
        return 2;
    }
    struct machine *machine = machine_load(words[1]);
    value made = CALL(machine, FENCE, "[static]guard.create", read_mark(words[2]));
    struct resource guard = resource_of(&made);
    value claimed = CALL(machine, FENCE, "[method]guard.claim", borrow(&guard), u64(token));
    const value *refusal = error_of(&claimed);
    int status = refusal == NULL ? 0 : 1;
    if (refusal != NULL) {
        printf("refused: %.*s\n", (int)name_of(refusal).size, name_of(refusal).data);
    } else {
        value high = CALL(machine, FENCE, "[method]guard.high-water", borrow(&guard));
        if (write_mark(words[2], number(inside(&high)))) {
            printf("claimed %" PRIu64 "\n", token);
        } else {
            perror(words[2]);
            status = 2;
        }
        discard(&high);
    }
    discard(&claimed);
    resource_free(machine, &guard);
    machine_free(machine);
    return status;
}
