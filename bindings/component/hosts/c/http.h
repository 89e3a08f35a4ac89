/* One request over HTTP/1.1 and its response, without ever waiting: `poll` does that, for all of them at once.
 *
 * It follows no redirection, repeats nothing, and speaks no TLS, which needs a library. Looking up a name waits, so it
 * is done once and beforehand. */
#ifndef HTTP_H
#define HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
    char *data;
    size_t size, room;
};

struct header {
    const char *name, *value;
    size_t name_size, value_size;
};

enum progress {
    /* Wait for what `exchange_wants` says, and go on. */
    GOES_ON,
    /* The response is there, whole. */
    ANSWERED,
    /* Nothing has left this machine. */
    NOT_SENT,
    /* Something may have left. */
    UNKNOWN,
};

struct addrinfo;

/* Where requests go. */
struct server {
    char host[256], port[256];
    struct addrinfo *addresses;
};

struct exchange {
    int socket;
    enum { CONNECTING, SENDING, RECEIVING } phase;
    const struct addrinfo *next;
    struct buffer request, response;
    size_t sent;
    /* Why it was not sent, or is unknown. */
    const char *why;
    /* Of a whole response. */
    unsigned status;
    size_t headers_at, body_at, body_size;
};

void append(struct buffer *buffer, const void *data, size_t size);
void append_text(struct buffer *buffer, const char *text);

/* Looks up the server of a url, which may take long. Answers why it cannot be used, or NULL. */
const char *server_find(struct server *server, const char *url);
void server_end(struct server *server);

/* Begins a request to the server, which has to outlive it. `headers` are whole lines, each with CR LF at its end,
 * without those of HTTP itself. */
enum progress exchange_begin(struct exchange *exchange, const struct server *server, const char *method,
                             const char *url, const char *headers, const void *body, size_t body_size);
/* What to `poll` its socket for. */
short exchange_wants(const struct exchange *exchange);
/* Does what can be done now. */
enum progress exchange_go_on(struct exchange *exchange);
/* The header of a response that stands at an offset, which begins at `headers_at`; false where there is none. */
bool exchange_header(const struct exchange *exchange, size_t *at, struct header *header);
void exchange_end(struct exchange *exchange);

#endif
