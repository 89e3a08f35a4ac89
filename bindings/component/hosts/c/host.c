#define _GNU_SOURCE

#include "host.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* A sleep does not count a suspension, so none is longer: after it the clock is read. */
#define LONGEST_SLEEP_MS 1000

/* It goes on counting while the machine is suspended; CLOCK_MONOTONIC of Linux does not. */
static uint64_t monotonic_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

value host_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    uint64_t unix_ms = (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
    return RECORD({"monotonic-ns", u64(monotonic_ns())}, {"unix-ms", u64(unix_ms)});
}

value host_random(size_t size) {
    unsigned char drawn[32];
    if (size > sizeof(drawn) || getentropy(drawn, size) != 0) {
        perror("getentropy");
        abort();
    }
    return bytes(drawn, size);
}

value host_config(void) {
    value node = RECORD({"poll", enumeration("acquire")}, {"watch", boolean(false)}, {"batch", none()},
                        {"durability", none()});
    value limits = RECORD({"locks", none()}, {"orphans", none()}, {"observations", none()});
    return RECORD({"nodes", LIST(node)}, {"drift-ppm", none()}, {"request-timeout-ms", some(u64(10000))},
                  {"limits", limits}, {"quorum", none()});
}

/* Ends the program where a command or a setting is refused. */
static void accepted(value result) {
    const value *error = error_of(&result);
    if (error != NULL) {
        machine_refused(error);
    }
    discard(&result);
}

void host_begin(struct host *host, const char *component, value store, const char *url, const value *credentials) {
    *host = (struct host){.machine = machine_load(component), .has_credentials = credentials != NULL};
    if (credentials != NULL) {
        host->credentials = *credentials;
    }
    value made = CALL(host->machine, CLIENT, "[static]client.create-wired", host_config(), LIST(store),
                      host_random(32), host_now());
    host->client = resource_of(&made);
    const char *why = server_find(&host->server, url);
    if (why != NULL) {
        fprintf(stderr, "%s: %s\n", url, why);
        exit(2);
    }
}

void host_acquire(struct host *host, uint64_t lock, const char *resource, value options) {
    accepted(METHOD(host, "acquire", u64(lock), text(resource), options, host_random(16), host_now()));
}

void host_close(struct host *host) {
    METHOD(host, "close", host_now());
}

static void respond(struct host *host, uint64_t id, value response) {
    METHOD(host, "handle-response", u64(id), response, host_now());
}

static value fault(const char *kind, const char *why) {
    return RECORD({"kind", enumeration(kind)}, {"detail", some(text(why))});
}

static value response_of(const struct exchange *exchange) {
    const char *body = exchange->response.data + exchange->body_at;
    value headers[64];
    size_t count = 0;
    struct header header;
    for (size_t at = exchange->headers_at; count < 64 && exchange_header(exchange, &at, &header);) {
        struct slice name = {header.name, header.name_size}, value = {header.value, header.value_size};
        /* Servers and proxies may send any bytes. None of the headers that mean something has others than ASCII. */
        if (is_text(name) && is_text(value)) {
            headers[count++] = RECORD({"name", text_of(name)}, {"value", text_of(value)});
        }
    }
    return RECORD({"status", u16((uint16_t)exchange->status)}, {"headers", list(count, headers)},
                  {"body", bytes(body, exchange->body_size)});
}

/* Tells the component what became of a request, if that is known by now. */
static void conclude(struct host *host, struct request *request, enum progress progress) {
    if (progress == GOES_ON && monotonic_ns() < request->deadline_ns) {
        return;
    }
    const struct exchange *exchange = &request->exchange;
    switch (progress) {
    case GOES_ON:
        respond(host, request->id,
                variant(exchange->sent == 0 ? "not-sent" : "unknown", fault("timeout", "no response in time")));
        break;
    case ANSWERED:
        respond(host, request->id, variant("http-response", response_of(exchange)));
        break;
    case NOT_SENT:
        respond(host, request->id, variant("not-sent", fault("unreachable", exchange->why)));
        break;
    case UNKNOWN:
        respond(host, request->id, variant("unknown", fault("reset", exchange->why)));
        break;
    }
    exchange_end(&request->exchange);
    request->is_open = false;
}

static void begin(struct host *host, const value *said) {
    struct request *request = host->requests;
    while (request < host->requests + MOST_REQUESTS && request->is_open) {
        request++;
    }
    uint64_t id = number(get(said, "id"));
    if (request == host->requests + MOST_REQUESTS) {
        respond(host, id, variant("not-sent", fault("busy", "too many requests are under way")));
        return;
    }
    struct buffer headers = {0}, line = {0};
    for (size_t at = 0; at < length(get(said, "headers")); at++) {
        const value *header = element(get(said, "headers"), at);
        struct slice name = text_in(get(header, "name")), value = text_in(get(header, "value"));
        append(&headers, name.data, name.size);
        append_text(&headers, ": ");
        append(&headers, value.data, value.size);
        append_text(&headers, "\r\n");
    }
    append(&headers, "", 1);
    struct slice method = text_in(get(said, "method")), url = text_in(get(said, "url"));
    /* Both, each ended by a zero. */
    append(&line, method.data, method.size);
    append(&line, "", 1);
    append(&line, url.data, url.size);
    append(&line, "", 1);
    uint8_t *body = copy_bytes(get(said, "body"));
    *request = (struct request){.is_open = true, .id = id, .deadline_ns = number(get(said, "deadline-ns"))};
    conclude(host, request,
             exchange_begin(&request->exchange, &host->server, line.data, line.data + method.size + 1, headers.data,
                            body, length(get(said, "body"))));
    free(body);
    free(headers.data);
    free(line.data);
}

/* Performs all that is to be done now. Answers when there is more, at the latest. */
static uint64_t drain(struct host *host, void (*heard)(struct host *, const value *)) {
    for (;;) {
        value output = METHOD(host, "poll-output", host_now());
        const value *said = payload(&output);
        bool is_over = is(&output, "wake-at");
        uint64_t wake_at = UINT64_MAX;
        if (is_over) {
            const value *at = inside(get(said, "at-ns"));
            wake_at = at == NULL ? wake_at : number(at);
        } else if (is(&output, "http-request")) {
            begin(host, said);
        } else if (is(&output, "event")) {
            heard(host, get(said, "event"));
        } else if (is(&output, "need-credentials") && host->has_credentials) {
            accepted(METHOD(host, "set-credentials", u16((uint16_t)number(get(said, "node"))),
                            copy(&host->credentials), host_now()));
        }
        /* Nothing else is asked of a host whose stores are behind HTTP. One that has no credentials, and would need
         * some, leaves its requests to fail at their deadlines. */
        discard(&output);
        if (is_over) {
            return wake_at;
        }
    }
}

static bool is_idle(struct host *host) {
    value idle = CALL(host->machine, CLIENT, "[method]client.is-idle", borrow(&host->client));
    return truth(&idle);
}

static int sleep_ms(uint64_t until_ns) {
    uint64_t now = monotonic_ns();
    if (until_ns <= now) {
        return 0;
    }
    /* Rounded up, or the last millisecond would be spent polling. */
    uint64_t left = (until_ns - now) / 1000000 + 1;
    return left < LONGEST_SLEEP_MS ? (int)left : LONGEST_SLEEP_MS;
}

void host_run(struct host *host, int input, void (*heard)(struct host *, const value *),
              bool (*readable)(struct host *)) {
    for (;;) {
        uint64_t until = drain(host, heard);
        if (is_idle(host)) {
            return;
        }
        /* One that is not open is -1, which `poll` passes over. */
        struct pollfd looks[MOST_REQUESTS + 1];
        for (size_t at = 0; at < MOST_REQUESTS; at++) {
            const struct request *request = &host->requests[at];
            looks[at].fd = request->is_open ? request->exchange.socket : -1;
            looks[at].events = exchange_wants(&request->exchange);
            if (request->is_open && request->deadline_ns < until) {
                until = request->deadline_ns;
            }
        }
        looks[MOST_REQUESTS] = (struct pollfd){.fd = input, .events = POLLIN};
        int count = poll(looks, MOST_REQUESTS + 1, sleep_ms(until));
        if (count < 0 && errno != EINTR) {
            perror("poll");
            exit(2);
        }
        for (size_t at = 0; at < MOST_REQUESTS; at++) {
            struct request *request = &host->requests[at];
            if (request->is_open) {
                bool can_go_on = count > 0 && looks[at].revents != 0;
                conclude(host, request, can_go_on ? exchange_go_on(&request->exchange) : GOES_ON);
            }
        }
        if (count > 0 && looks[MOST_REQUESTS].revents != 0 && !readable(host)) {
            input = -1;
        }
        accepted(METHOD(host, "handle-timeout", host_random(16), host_now()));
    }
}

void host_end(struct host *host) {
    for (size_t at = 0; at < MOST_REQUESTS; at++) {
        if (host->requests[at].is_open) {
            exchange_end(&host->requests[at].exchange);
        }
    }
    if (host->has_credentials) {
        discard(&host->credentials);
    }
    server_end(&host->server);
    resource_free(host->machine, &host->client);
    machine_free(host->machine);
}
