/* How long a lock takes in C without a network: bench COMPONENT [SECONDS].
 *
 * One lock over Webdis is taken and given back, over and over; the answers of the server are made up. */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <wasmtime.h>

#include "host.h"

static double processor_s(void) {
    return (double)clock() / CLOCKS_PER_SEC;
}

static value at(uint64_t instant) {
    return RECORD({"monotonic-ns", u64(instant)}, {"unix-ms", u64(1700000000000)});
}

static value options(void) {
    return RECORD({"ttl-ms", none()}, {"wait", bare("once")}, {"lock-delay-ms", u64(0)}, {"max-hold-ms", none()},
                  {"renewal", bare("automatic")}, {"owner", text("bench")}, {"data", none()}, {"run", none()});
}

/* What a script says, with the number that stands last in the request. */
static value answer(bool is_acquire, uint64_t cycle, const value *request) {
    size_t size = length(request), from = size;
    char *body = (char *)copy_bytes(request), said[256];
    while (from > 0 && body[from - 1] != '/') {
        from--;
    }
    if (is_acquire) {
        snprintf(said, sizeof(said), "{\"EVALSHA\":[\"granted\",\"%" PRIu64 "\",\"%.*s\"]}", 1700000000000 + cycle,
                 (int)(size - from), body + from);
    } else {
        snprintf(said, sizeof(said), "{\"EVALSHA\":\"%.*s\"}", (int)(size - from), body + from);
    }
    free(body);
    value header = RECORD({"name", text("content-type")}, {"value", text("application/json")});
    return variant("http-response", RECORD({"status", u16(200)}, {"headers", LIST(header)},
                                           {"body", bytes(said, strlen(said))}));
}

/* Plays the server, and says how many calls it took to hear what was expected. */
static unsigned drain(struct host *host, const char *expected, uint64_t cycle) {
    bool is_heard = false;
    for (unsigned calls = 1;; calls++) {
        value output = METHOD(host, "poll-output", at(cycle));
        bool is_over = is(&output, "wake-at");
        if (is(&output, "http-request")) {
            const value *request = payload(&output);
            METHOD(host, "handle-response", u64(number(get(request, "id"))),
                   answer(strcmp(expected, "acquired") == 0, cycle, get(request, "body")), at(cycle));
            calls++;
        } else if (is(&output, "event")) {
            is_heard = is(get(payload(&output), "event"), expected);
        }
        discard(&output);
        if (is_over && !is_heard) {
            fprintf(stderr, "nothing is %s\n", expected);
            abort();
        }
        if (is_over) {
            return calls;
        }
    }
}

/* For `cargo xtask bench --plot`: a line in the file that it names. */
static void tell(double each_us) {
    const char *path = getenv("LEASEHOLD_FIGURES");
    FILE *file = path == NULL ? NULL : fopen(path, "a");
    if (file != NULL) {
        fprintf(file, "version | wasmtime for C | %s\n", WASMTIME_VERSION);
        fprintf(file, "figure | WebAssembly | as requests over HTTP | time | us | wasmtime, in C | %.3f | - | -\n", each_us);
        fclose(file);
    }
}

int main(int count, char **words) {
    if (count < 2) {
        fprintf(stderr, "usage: bench COMPONENT [SECONDS]\n");
        return 2;
    }
    double seconds = count > 2 ? strtod(words[2], NULL) : 3;
    const char *url = "http://127.0.0.1";
    value store = RECORD({"dialect", enumeration("webdis")}, {"url", text(url)},
                         {"access", enumeration("anonymous")}, {"retention-ms", none()}, {"plaintext", none()});
    double began = processor_s();
    struct host host;
    host_begin(&host, words[1], variant("redis-http", store), url, NULL);
    printf("loaded, and a client made, in %.1f ms\n", (processor_s() - began) * 1e3);
    uint64_t cycles = 0, calls = 0;
    began = processor_s();
    do {
        cycles++;
        discard((value[]){METHOD(&host, "acquire", u64(cycles), text("invoice/42"), options(), host_random(16),
                                 at(cycles))});
        calls += 1 + drain(&host, "acquired", cycles);
        discard((value[]){METHOD(&host, "release", u64(cycles), at(cycles))});
        calls += 1 + drain(&host, "released", cycles);
    } while (processor_s() - began < seconds);
    double each_us = (processor_s() - began) / (double)cycles * 1e6;
    printf("%.0f us of CPU for acquire and release, %" PRIu64 " calls\n", each_us, calls / cycles);
    tell(each_us);
    host_end(&host);
    return 0;
}
