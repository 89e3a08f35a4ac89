#include "value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(const value *value, wasmtime_component_valkind_t kind) {
    if (value == NULL || value->kind != kind) {
        fprintf(stderr, "a value is of kind %d, not %d\n", value == NULL ? -1 : value->kind, kind);
        abort();
    }
}

static wasm_name_t name(const char *data, size_t size) {
    wasm_name_t name;
    wasm_byte_vec_new(&name, size, data);
    return name;
}

value u16(uint16_t number) {
    return (value){.kind = WASMTIME_COMPONENT_U16, .of.u16 = number};
}

value u32(uint32_t number) {
    return (value){.kind = WASMTIME_COMPONENT_U32, .of.u32 = number};
}

value u64(uint64_t number) {
    return (value){.kind = WASMTIME_COMPONENT_U64, .of.u64 = number};
}

value boolean(bool truth) {
    return (value){.kind = WASMTIME_COMPONENT_BOOL, .of.boolean = truth};
}

/* How many bytes follow the first of a character; more than there can be where it is none. */
static size_t following(unsigned first) {
    if (first < 0x80) {
        return 0;
    }
    return first < 0xc2 || first > 0xf4 ? SIZE_MAX : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
}

bool is_text(struct slice bytes) {
    const unsigned char *at = (const unsigned char *)bytes.data, *end = at + bytes.size;
    while (at < end) {
        unsigned first = *at++;
        size_t more = following(first);
        if (more > (size_t)(end - at)) {
            return false;
        }
        /* Neither longer than need be, nor half of a pair of UTF-16, nor beyond U+10FFFF. */
        unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        for (; more > 0; more--, at++) {
            if (*at < least || *at > most) {
                return false;
            }
            least = 0x80;
            most = 0xbf;
        }
    }
    return true;
}

value text(const char *text) {
    return text_of((struct slice){text, strlen(text)});
}

value text_of(struct slice text) {
    return (value){.kind = WASMTIME_COMPONENT_STRING, .of.string = name(text.data, text.size)};
}

value bytes(const void *data, size_t size) {
    value made = {.kind = WASMTIME_COMPONENT_LIST};
    wasmtime_component_vallist_new_uninit(&made.of.list, size);
    for (size_t at = 0; at < size; at++) {
        made.of.list.data[at] = (value){.kind = WASMTIME_COMPONENT_U8, .of.u8 = ((const uint8_t *)data)[at]};
    }
    return made;
}

value enumeration(const char *chosen) {
    return (value){.kind = WASMTIME_COMPONENT_ENUM, .of.enumeration = name(chosen, strlen(chosen))};
}

value some(value payload) {
    return (value){.kind = WASMTIME_COMPONENT_OPTION, .of.option = wasmtime_component_val_new(&payload)};
}

value none(void) {
    return (value){.kind = WASMTIME_COMPONENT_OPTION, .of.option = NULL};
}

value variant(const char *chosen, value payload) {
    value made = bare(chosen);
    made.of.variant.val = wasmtime_component_val_new(&payload);
    return made;
}

value bare(const char *chosen) {
    return (value){.kind = WASMTIME_COMPONENT_VARIANT, .of.variant.discriminant = name(chosen, strlen(chosen))};
}

value list(size_t size, const value *values) {
    value made = {.kind = WASMTIME_COMPONENT_LIST};
    wasmtime_component_vallist_new(&made.of.list, size, values);
    return made;
}

value record(size_t size, const struct field *fields) {
    value made = {.kind = WASMTIME_COMPONENT_RECORD};
    wasmtime_component_valrecord_new_uninit(&made.of.record, size);
    for (size_t at = 0; at < size; at++) {
        made.of.record.data[at].name = name(fields[at].name, strlen(fields[at].name));
        made.of.record.data[at].val = fields[at].value;
    }
    return made;
}

value copy(const value *original) {
    value made;
    wasmtime_component_val_clone(original, &made);
    return made;
}

void discard(value *value) {
    wasmtime_component_val_delete(value);
}

const value *get(const value *record, const char *name) {
    expect(record, WASMTIME_COMPONENT_RECORD);
    for (size_t at = 0; at < record->of.record.size; at++) {
        const wasmtime_component_valrecord_entry_t *entry = &record->of.record.data[at];
        if (entry->name.size == strlen(name) && memcmp(entry->name.data, name, entry->name.size) == 0) {
            return &entry->val;
        }
    }
    fprintf(stderr, "a record has no field `%s`\n", name);
    abort();
}

bool is(const value *variant, const char *name) {
    struct slice tag = name_of(variant);
    return tag.size == strlen(name) && memcmp(tag.data, name, tag.size) == 0;
}

struct slice name_of(const value *value) {
    if (value != NULL && value->kind == WASMTIME_COMPONENT_ENUM) {
        return (struct slice){value->of.enumeration.data, value->of.enumeration.size};
    }
    expect(value, WASMTIME_COMPONENT_VARIANT);
    return (struct slice){value->of.variant.discriminant.data, value->of.variant.discriminant.size};
}

const value *payload(const value *variant) {
    expect(variant, WASMTIME_COMPONENT_VARIANT);
    return variant->of.variant.val;
}

const value *inside(const value *option) {
    expect(option, WASMTIME_COMPONENT_OPTION);
    return option->of.option;
}

const value *error_of(const value *result) {
    expect(result, WASMTIME_COMPONENT_RESULT);
    return result->of.result.is_ok ? NULL : result->of.result.val;
}

uint64_t number(const value *value) {
    switch (value->kind) {
    case WASMTIME_COMPONENT_U8:
        return value->of.u8;
    case WASMTIME_COMPONENT_U16:
        return value->of.u16;
    case WASMTIME_COMPONENT_U32:
        return value->of.u32;
    default:
        expect(value, WASMTIME_COMPONENT_U64);
        return value->of.u64;
    }
}

bool truth(const value *value) {
    expect(value, WASMTIME_COMPONENT_BOOL);
    return value->of.boolean;
}

struct slice text_in(const value *value) {
    expect(value, WASMTIME_COMPONENT_STRING);
    return (struct slice){value->of.string.data, value->of.string.size};
}

size_t length(const value *list) {
    expect(list, WASMTIME_COMPONENT_LIST);
    return list->of.list.size;
}

const value *element(const value *list, size_t at) {
    expect(list, WASMTIME_COMPONENT_LIST);
    return &list->of.list.data[at];
}

uint8_t *copy_bytes(const value *list) {
    size_t size = length(list);
    uint8_t *copy = malloc(size == 0 ? 1 : size);
    for (size_t at = 0; copy != NULL && at < size; at++) {
        copy[at] = (uint8_t)number(element(list, at));
    }
    return copy;
}
