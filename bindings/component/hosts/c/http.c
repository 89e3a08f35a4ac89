#define _POSIX_C_SOURCE 200809L

#include "http.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* One byte more than the longest body that is understood, and far more than the head of any honest answer. */
#define MOST_BODY 1048577
#define MOST_HEAD 65536

void append(struct buffer *buffer, const void *data, size_t size) {
    if (buffer->room - buffer->size < size) {
        buffer->room = 2 * buffer->room + size + 256;
        buffer->data = realloc(buffer->data, buffer->room);
        if (buffer->data == NULL) {
            abort();
        }
    }
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

void append_text(struct buffer *buffer, const char *text) {
    append(buffer, text, strlen(text));
}

static enum progress fail(struct exchange *exchange, enum progress progress, const char *why) {
    exchange->why = why;
    return progress;
}

/* Tries the next address, until one takes the connection or says that it may yet. */
static enum progress try_next(struct exchange *exchange) {
    while (exchange->next != NULL) {
        const struct addrinfo *address = exchange->next;
        exchange->next = address->ai_next;
        if (exchange->socket >= 0) {
            close(exchange->socket);
        }
        exchange->socket = socket(address->ai_family, address->ai_socktype, address->ai_protocol);
        if (exchange->socket >= 0 && fcntl(exchange->socket, F_SETFL, O_NONBLOCK) == 0 &&
            fcntl(exchange->socket, F_SETFD, FD_CLOEXEC) == 0 &&
            (connect(exchange->socket, address->ai_addr, address->ai_addrlen) == 0 || errno == EINPROGRESS)) {
            exchange->phase = CONNECTING;
            return GOES_ON;
        }
    }
    return fail(exchange, NOT_SENT, "no connection could be made");
}

/* Splits http://host[:port]/path, where the host may be in brackets; false for anything else. */
static bool split(const char *url, char *host, char *port, size_t room, const char **authority, const char **path) {
    const char *scheme = "http://";
    if (strncmp(url, scheme, strlen(scheme)) != 0) {
        return false;
    }
    *authority = url + strlen(scheme);
    *path = *authority + strcspn(*authority, "/");
    size_t size = (size_t)(*path - *authority);
    bool is_bracketed = size > 0 && **authority == '[';
    const char *begin = *authority + (is_bracketed ? 1 : 0);
    const char *bracket = is_bracketed ? memchr(*authority, ']', size) : *authority;
    if (size == 0 || size >= room || bracket == NULL) {
        return false;
    }
    const char *colon = memchr(bracket, ':', (size_t)(*path - bracket));
    const char *end = is_bracketed ? bracket : colon == NULL ? *path : colon;
    bool has_port = colon != NULL && colon + 1 < *path;
    snprintf(host, room, "%.*s", (int)(end - begin), begin);
    snprintf(port, room, "%.*s", has_port ? (int)(*path - colon - 1) : 2, has_port ? colon + 1 : "80");
    return true;
}

const char *server_find(struct server *server, const char *url) {
    *server = (struct server){.addresses = NULL};
    const char *authority, *path;
    if (!split(url, server->host, server->port, sizeof(server->host), &authority, &path)) {
        return "the url is none that this host can use";
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    int error = getaddrinfo(server->host, server->port, &hints, &server->addresses);
    if (error != 0) {
        server->addresses = NULL;
        return gai_strerror(error);
    }
    return NULL;
}

void server_end(struct server *server) {
    if (server->addresses != NULL) {
        freeaddrinfo(server->addresses);
    }
}

enum progress exchange_begin(struct exchange *exchange, const struct server *server, const char *method,
                             const char *url, const char *headers, const void *body, size_t body_size) {
    *exchange = (struct exchange){.socket = -1};
    char host[sizeof(server->host)], port[sizeof(server->port)], line[64];
    const char *authority, *path;
    if (!split(url, host, port, sizeof(host), &authority, &path) || strcasecmp(host, server->host) != 0 ||
        strcmp(port, server->port) != 0) {
        return fail(exchange, NOT_SENT, "the url is none of the server that was looked up");
    }
    append_text(&exchange->request, method);
    append_text(&exchange->request, " ");
    append_text(&exchange->request, path[0] == '\0' ? "/" : path);
    append_text(&exchange->request, " HTTP/1.1\r\nhost: ");
    append(&exchange->request, authority, (size_t)(path - authority));
    append_text(&exchange->request, "\r\nconnection: close\r\n");
    snprintf(line, sizeof(line), "content-length: %zu\r\n", body_size);
    append_text(&exchange->request, line);
    append_text(&exchange->request, headers);
    append_text(&exchange->request, "\r\n");
    append(&exchange->request, body, body_size);
    exchange->next = server->addresses;
    return try_next(exchange);
}

short exchange_wants(const struct exchange *exchange) {
    return exchange->phase == RECEIVING ? POLLIN : POLLOUT;
}

bool exchange_header(const struct exchange *exchange, size_t *at, struct header *header) {
    const char *line = exchange->response.data + *at;
    size_t left = exchange->body_at - *at;
    const char *end = memchr(line, '\n', left);
    const char *colon = end == NULL ? NULL : memchr(line, ':', (size_t)(end - line));
    if (colon == NULL) {
        return false;
    }
    *at += (size_t)(end - line) + 1;
    const char *value = colon + 1;
    while (value < end && (*value == ' ' || *value == '\t')) {
        value++;
    }
    while (end > value && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    *header = (struct header){line, value, (size_t)(colon - line), (size_t)(end - value)};
    return true;
}

static bool named(const struct header *header, const char *name) {
    return header->name_size == strlen(name) && strncasecmp(header->name, name, header->name_size) == 0;
}

/* Joins the pieces of a body that comes in chunks. Answers whether its end is there; `*ok` becomes false where it makes
 * no sense. */
static bool join_chunks(struct exchange *exchange, bool *ok) {
    char *data = exchange->response.data, *end = data + exchange->response.size;
    /* First a look, since what is not whole must stay as it is. */
    for (int writes = 0; writes < 2; writes++) {
        char *at = data + exchange->body_at, *to = at;
        for (;;) {
            char *line_end = memchr(at, '\n', (size_t)(end - at));
            if (line_end == NULL) {
                return false;
            }
            char *stop;
            errno = 0;
            unsigned long size = strtoul(at, &stop, 16);
            if (stop == at || stop > line_end || *at == '-' || errno != 0 || size > MOST_BODY) {
                *ok = false;
                return false;
            }
            at = line_end + 1;
            if ((size_t)(end - at) < size + 2) {
                return false;
            }
            if (size == 0) {
                break;
            }
            if (writes) {
                memmove(to, at, size);
            }
            to += size;
            at += size + 2;
        }
        exchange->body_size = (size_t)(to - (data + exchange->body_at));
    }
    return true;
}

/* Whether all of the response is there. `*ok` becomes false where it makes no sense. */
static bool is_whole(struct exchange *exchange, bool *ok) {
    struct buffer *response = &exchange->response;
    /* A text has an end, for functions that look for it. */
    append(response, "", 1);
    response->size--;
    char *head_end = strstr(response->data, "\r\n\r\n");
    int major, minor;
    if (head_end == NULL) {
        *ok = response->size < MOST_HEAD;
        return false;
    }
    *ok = sscanf(response->data, "HTTP/%1d.%1d %3u", &major, &minor, &exchange->status) == 3;
    exchange->headers_at = (size_t)(strstr(response->data, "\r\n") - response->data) + 2;
    exchange->body_at = (size_t)(head_end - response->data) + 4;
    bool in_chunks = false, has_length = false;
    unsigned long size = 0;
    struct header header;
    for (size_t at = exchange->headers_at; *ok && exchange_header(exchange, &at, &header);) {
        if (named(&header, "content-length")) {
            has_length = true;
            errno = 0;
            char *stop;
            size = strtoul(header.value, &stop, 10);
            *ok = errno == 0 && header.value_size > 0 && header.value[0] >= '0' && header.value[0] <= '9' &&
                  stop == header.value + header.value_size;
        } else if (named(&header, "transfer-encoding")) {
            in_chunks = true;
        }
    }
    if (!*ok) {
        return false;
    }
    if (in_chunks) {
        return join_chunks(exchange, ok);
    }
    /* Without a length the end of the connection would be that of the body, and nobody could tell it from a fault. */
    *ok = has_length;
    exchange->body_size = size < MOST_BODY ? size : MOST_BODY;
    return has_length && response->size - exchange->body_at >= exchange->body_size;
}

static enum progress receive(struct exchange *exchange) {
    for (;;) {
        char piece[16384];
        ssize_t count = recv(exchange->socket, piece, sizeof(piece), 0);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            return GOES_ON;
        }
        if (count <= 0) {
            return fail(exchange, UNKNOWN, "the connection has ended before the response did");
        }
        append(&exchange->response, piece, (size_t)count);
        bool ok = true;
        if (is_whole(exchange, &ok)) {
            return ANSWERED;
        }
        if (!ok || exchange->response.size > 2 * (MOST_HEAD + MOST_BODY)) {
            return fail(exchange, UNKNOWN, "the response is none of HTTP, or too long");
        }
    }
}

enum progress exchange_go_on(struct exchange *exchange) {
    if (exchange->phase == CONNECTING) {
        struct pollfd look = {.fd = exchange->socket, .events = POLLOUT};
        int error = 0;
        socklen_t size = sizeof(error);
        if (poll(&look, 1, 0) <= 0) {
            return GOES_ON;
        }
        if (getsockopt(exchange->socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
            return try_next(exchange);
        }
        exchange->phase = SENDING;
    }
    while (exchange->phase == SENDING) {
        size_t left = exchange->request.size - exchange->sent;
        ssize_t count = send(exchange->socket, exchange->request.data + exchange->sent, left, MSG_NOSIGNAL);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            return GOES_ON;
        }
        if (count < 0) {
            return fail(exchange, UNKNOWN, "the connection broke");
        }
        exchange->sent += (size_t)count;
        if (exchange->sent == exchange->request.size) {
            exchange->phase = RECEIVING;
        }
    }
    return receive(exchange);
}

void exchange_end(struct exchange *exchange) {
    if (exchange->socket >= 0) {
        close(exchange->socket);
    }
    free(exchange->request.data);
    free(exchange->response.data);
}
