/* What a protected resource does with a token: guard COMPONENT MARK TOKEN.
 *
 * MARK is a file with the highest token that the resource has seen. A token below it comes from a holder that has lost
 * its lock and does not know yet; it is refused, with status 1. In a real resource the mark changes in one step with
 * the data. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "machine.h"

int main(int count, char **words) {
    if (count != 4) {
        fprintf(stderr, "usage: guard COMPONENT MARK TOKEN\n");
        return 2;
    }
    uint64_t seen = 0, token = strtoull(words[3], NULL, 10);
    FILE *mark = fopen(words[2], "r");
    bool is_marked = mark != NULL && fscanf(mark, "%" SCNu64, &seen) == 1;
    if (mark != NULL) {
        fclose(mark);
    }
    struct machine *machine = machine_load(words[1]);
    value made = CALL(machine, FENCE, "[static]guard.create", is_marked ? some(u64(seen)) : none());
    struct resource guard = resource_of(&made);
    value claimed = CALL(machine, FENCE, "[method]guard.claim", borrow(&guard), u64(token));
    const value *refusal = error_of(&claimed);
    int status = refusal == NULL ? 0 : 1;
    if (refusal != NULL) {
        printf("refused: %.*s\n", (int)name_of(refusal).size, name_of(refusal).data);
    } else if ((mark = fopen(words[2], "w")) == NULL) {
        perror(words[2]);
        status = 2;
    } else {
        value high = CALL(machine, FENCE, "[method]guard.high-water", borrow(&guard));
        fprintf(mark, "%" PRIu64, number(inside(&high)));
        fclose(mark);
        discard(&high);
        printf("claimed %" PRIu64 "\n", token);
    }
    discard(&claimed);
    resource_free(machine, &guard);
    machine_free(machine);
    return status;
}
