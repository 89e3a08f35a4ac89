/* A host of the component: a loop, clocks, randomness and HTTP, and not one decision about locks. */
#ifndef HOST_H
#define HOST_H

#include "http.h"
#include "machine.h"

/* More than one lock on one store ever has under way. */
#define MOST_REQUESTS 16

struct request {
    bool is_open;
    uint64_t id, deadline_ns;
    struct exchange exchange;
};

struct host {
    struct machine *machine;
    struct server server;
    struct resource client;
    /* Those of the WIT, where the store asks for some. */
    bool has_credentials;
    value credentials;
    struct request requests[MOST_REQUESTS];
};

/* A method of the client that has arguments. */
#define METHOD(host, name, ...)                                                                                        \
    CALL((host)->machine, CLIENT, "[method]client." name, borrow(&(host)->client), __VA_ARGS__)

/* What the clocks show. */
value host_now(void);
/* So many bytes from the operating system, which draws them for this very call. */
value host_random(size_t size);
/* One node, with all that has a default at its default. */
value host_config(void);

/* One client of one store. `url` is where the store is, which is looked up here and never again: the loop must not wait
 * for it while a lease is held. `credentials` is NULL where the store asks for none. */
void host_begin(struct host *host, const char *component, value store, const char *url, const value *credentials);
void host_acquire(struct host *host, uint64_t lock, const char *resource, value options);
/* Gives everything back; `host_run` ends when that is done. */
void host_close(struct host *host);
/* Does what the component says, and tells `heard` what happens. When there is something to read from `input`, or it has
 * ended, `readable` is told; where it answers false, `input` is looked at no more. */
void host_run(struct host *host, int input, void (*heard)(struct host *, const value *event),
              bool (*readable)(struct host *));
void host_end(struct host *host);

#endif
