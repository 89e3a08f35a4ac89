/* Values of the WIT in C.
 *
 * A record is written as RECORD({"ttl-ms", some(u64(30000))}, ...), a variant as variant("for", payload). The code that
 * makes a value owns it, until it becomes part of another or goes to a call. What is read belongs to the value that it
 * is part of.
 *
 * Asking a value for what it is not, such as a field that the record does not have, is a mistake in the program, which
 * it ends: both sides of a call come from the same WIT. */
#ifndef VALUE_H
#define VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wasmtime/component/val.h>

typedef wasmtime_component_val_t value;

struct field {
    const char *name;
    value value;
};

/* A text or bytes within a value: not ended by a zero. */
struct slice {
    const char *data;
    size_t size;
};

value u16(uint16_t number);
value u32(uint32_t number);
value u64(uint64_t number);
value boolean(bool truth);
/* Whether it is UTF-8. A text that is not ends the program, inside of wasmtime: ask before one comes from outside. */
bool is_text(struct slice bytes);
value text(const char *text);
value text_of(struct slice text);
value bytes(const void *data, size_t size);
value enumeration(const char *name);
value some(value payload);
value none(void);
value variant(const char *name, value payload);
value bare(const char *name);
/* A list of as many values as there are. */
value list(size_t size, const value *values);
value record(size_t size, const struct field *fields);

#define RECORD(...)                                                                                                    \
    record(sizeof((struct field[]){__VA_ARGS__}) / sizeof(struct field), (struct field[]){__VA_ARGS__})
#define LIST(...) list(sizeof((value[]){__VA_ARGS__}) / sizeof(value), (value[]){__VA_ARGS__})

value copy(const value *value);
void discard(value *value);

/* A field of a record. */
const value *get(const value *record, const char *name);
/* Whether a variant is of this case. */
bool is(const value *variant, const char *name);
/* The name of a variant's case, or of an enum's. */
struct slice name_of(const value *value);
/* What stands behind a case, or NULL. */
const value *payload(const value *variant);
/* What is in an option, or NULL. */
const value *inside(const value *option);
/* The error of a result, or NULL where it is none. An error without a payload is not in this WIT. */
const value *error_of(const value *result);
uint64_t number(const value *value);
bool truth(const value *value);
struct slice text_in(const value *value);
size_t length(const value *list);
const value *element(const value *list, size_t at);
/* The bytes of a `list<u8>`, which the caller frees. */
uint8_t *copy_bytes(const value *list);

#endif
