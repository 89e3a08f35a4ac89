/* Holds a lock until its input ends: lock COMPONENT STORE URL RESOURCE [OPTIONS].
 *
 * STORE is `webdis`, `upstash` or `dynamodb`. Options are --ttl-ms, --wait-ms, --renew-ms, --owner, and for DynamoDB
 * --table and --region. Credentials come from the environment: UPSTASH_REDIS_REST_TOKEN for the second,
 * AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, with AWS_SESSION_TOKEN or without, for the third. What happens is
 * written line by line. The status is 0 if the lock was released, 1 if it was not granted, 3 if the lease was lost, and
 * 2 for anything else that ends it, such as a word that makes no sense; a lease that it held then runs out. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

/* The host chooses the numbers of its locks; this one has one. */
#define LOCK 1

struct settings {
    const char *component, *store, *url, *resource;
    const char *ttl_ms, *wait_ms, *renew_ms, *owner, *table, *region;
};

static int status = 1;

/* Ends the program where a word from outside is not UTF-8. It may be a secret, so it is not told. */
static void check_text(const char *name, const char *word) {
    if (!is_text((struct slice){word, strlen(word)})) {
        fprintf(stderr, "%s is not UTF-8\n", name);
        exit(2);
    }
}

static void read_words(struct settings *settings, int count, char **words) {
    const struct {
        const char *name;
        const char **value;
    } options[] = {
        {"--ttl-ms", &settings->ttl_ms}, {"--wait-ms", &settings->wait_ms}, {"--renew-ms", &settings->renew_ms},
        {"--owner", &settings->owner},   {"--table", &settings->table},     {"--region", &settings->region},
    };
    const char **positions[] = {&settings->component, &settings->store, &settings->url, &settings->resource};
    size_t position = 0;
    for (int at = 1; at < count; at++) {
        const char **value = position < 4 ? positions[position] : NULL;
        bool is_option = strncmp(words[at], "--", 2) == 0;
        for (size_t option = 0; is_option && option < sizeof(options) / sizeof(*options); option++) {
            value = strcmp(words[at], options[option].name) == 0 ? options[option].value : value;
        }
        at += is_option ? 1 : 0;
        position += is_option ? 0 : 1;
        if (value == NULL || at == count) {
            fprintf(stderr, "usage: lock COMPONENT webdis|upstash|dynamodb URL RESOURCE [--ttl-ms N] [--wait-ms N] "
                            "[--renew-ms N] [--owner TEXT] [--table NAME] [--region NAME]\n");
            exit(2);
        }
        check_text("an argument", words[at]);
        *value = words[at];
    }
    if (position < 4) {
        fprintf(stderr, "which component, store, url and resource?\n");
        exit(2);
    }
    if (strcmp(settings->store, "webdis") != 0 && strcmp(settings->store, "upstash") != 0 &&
        strcmp(settings->store, "dynamodb") != 0) {
        fprintf(stderr, "`%s` is no store: webdis, upstash or dynamodb\n", settings->store);
        exit(2);
    }
}

static uint64_t milliseconds(const char *word) {
    char *end;
    errno = 0;
    uint64_t number = strtoull(word, &end, 10);
    if (errno != 0 || *end != '\0' || word[0] < '0' || word[0] > '9') {
        fprintf(stderr, "`%s` is no number of milliseconds\n", word);
        exit(2);
    }
    return number;
}

static value store_of(const struct settings *settings) {
    if (strcmp(settings->store, "dynamodb") == 0) {
        value table = RECORD({"table", text(settings->table)}, {"region", text(settings->region)},
                             {"url", text(settings->url)}, {"key", none()}, {"sort-key", none()}, {"expires", none()},
                             {"plaintext", none()});
        return variant("dynamodb", table);
    }
    bool is_upstash = strcmp(settings->store, "upstash") == 0;
    value http = RECORD({"dialect", enumeration(is_upstash ? "upstash" : "webdis")}, {"url", text(settings->url)},
                        {"access", enumeration(is_upstash ? "with-credentials" : "anonymous")},
                        {"retention-ms", none()}, {"plaintext", none()});
    return variant("redis-http", http);
}

static const char *variable(const char *name) {
    const char *value = getenv(name);
    if (value == NULL) {
        fprintf(stderr, "%s is not set\n", name);
        exit(2);
    }
    check_text(name, value);
    return value;
}

/* Whether the store asks for some. */
static bool credentials_of(const struct settings *settings, value *credentials) {
    if (strcmp(settings->store, "webdis") == 0) {
        return false;
    }
    if (strcmp(settings->store, "upstash") == 0) {
        const char *token = variable("UPSTASH_REDIS_REST_TOKEN");
        *credentials = variant("token", RECORD({"token", text(token)}, {"expires-unix-ms", none()}));
        return true;
    }
    const char *session = getenv("AWS_SESSION_TOKEN") == NULL ? NULL : variable("AWS_SESSION_TOKEN");
    value keys = RECORD({"access-key-id", text(variable("AWS_ACCESS_KEY_ID"))},
                        {"secret-access-key", text(variable("AWS_SECRET_ACCESS_KEY"))},
                        {"session-token", session == NULL ? none() : some(text(session))},
                        {"expires-unix-ms", none()});
    *credentials = variant("aws", keys);
    return true;
}

static value options_of(const struct settings *settings) {
    value wait = settings->wait_ms == NULL
                     ? bare("once")
                     : variant("for", RECORD({"wait-ms", u64(milliseconds(settings->wait_ms))}));
    value renewal = settings->renew_ms == NULL
                        ? bare("automatic")
                        : variant("every", RECORD({"interval-ms", u64(milliseconds(settings->renew_ms))}));
    return RECORD({"ttl-ms", settings->ttl_ms == NULL ? none() : some(u64(milliseconds(settings->ttl_ms)))},
                  {"wait", wait}, {"lock-delay-ms", u64(0)}, {"max-hold-ms", none()}, {"renewal", renewal},
                  {"owner", text(settings->owner)}, {"data", none()}, {"run", none()});
}

static void print_word(struct slice word) {
    printf(" %.*s", (int)word.size, word.data);
}

static void print_owner(const value *holding) {
    const value *owner = holding == NULL ? NULL : inside(get(holding, "owner"));
    bool is_named = owner != NULL && text_in(owner).size > 0;
    print_word(is_named ? text_in(owner) : (struct slice){"somebody", strlen("somebody")});
}

static void print_failure(const value *failure) {
    print_word(name_of(failure));
    if (is(failure, "busy") || is(failure, "timed-out")) {
        print_owner(inside(get(payload(failure), "holding")));
    } else if (is(failure, "throttled") || is(failure, "unavailable")) {
        print_word(name_of(get(payload(failure), "kind")));
    } else if (is(failure, "refused")) {
        print_word(text_in(get(payload(failure), "detail")));
    }
}

/* Says what happened, in a few words. */
static void heard(struct host *host, const value *event) {
    const value *said = payload(event);
    printf("%.*s", (int)name_of(event).size, name_of(event).data);
    if (is(event, "acquired")) {
        printf(" %" PRIu64, number(get(said, "token")));
        status = 3;
    } else if (is(event, "contended")) {
        print_owner(get(said, "holding"));
    } else if (is(event, "failed")) {
        print_failure(get(said, "failure"));
        host_close(host);
    } else if (is(event, "renew-delayed")) {
        print_word(name_of(get(get(said, "fault"), "kind")));
    } else if (is(event, "lost")) {
        print_word(name_of(get(said, "reason")));
        host_close(host);
    } else if (is(event, "released")) {
        printf("%s", truth(get(said, "confirmed")) ? "" : " unconfirmed");
        status = 0;
    }
    printf("\n");
    fflush(stdout);
}

static bool readable(struct host *host) {
    char piece[256];
    if (read(STDIN_FILENO, piece, sizeof(piece)) > 0) {
        return true;
    }
    host_close(host);
    return false;
}

int main(int count, char **words) {
    struct settings settings = {.owner = "", .table = "", .region = "us-east-1"};
    read_words(&settings, count, words);
    value credentials;
    bool has_credentials = credentials_of(&settings, &credentials);
    struct host host;
    host_begin(&host, settings.component, store_of(&settings), settings.url, has_credentials ? &credentials : NULL);
    host_acquire(&host, LOCK, settings.resource, options_of(&settings));
    host_run(&host, STDIN_FILENO, heard, readable);
    host_end(&host);
    return status;
}
