#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wasmtime/config.h>
#include <wasmtime/engine.h>
#include <wasmtime/error.h>
#include <wasmtime/store.h>

/* What a guest cannot answer for: the memory it may have, and instructions for one call, about a second of them. */
#define MEMORY_BYTES (256LL << 20)
#define FUEL 4000000000ULL
/* More functions than the WIT has. */
#define MOST_FUNCTIONS 64

struct function {
    const char *interface, *name;
    wasmtime_component_func_t function;
    size_t results;
};

struct machine {
    wasm_engine_t *engine;
    wasmtime_store_t *store;
    wasmtime_context_t *context;
    wasmtime_component_t *component;
    wasmtime_component_linker_t *linker;
    wasmtime_component_instance_t instance;
    /* Those that were called before. */
    struct function functions[MOST_FUNCTIONS];
    size_t known;
};

static void check(wasmtime_error_t *error, const char *what) {
    if (error == NULL) {
        return;
    }
    wasm_name_t message;
    wasmtime_error_message(error, &message);
    fprintf(stderr, "%s: %.*s\n", what, (int)message.size, message.data);
    wasm_byte_vec_delete(&message);
    wasmtime_error_delete(error);
    exit(2);
}

/* As `engine` of the host in Python has it; a file that was compiled with other settings is refused. */
static wasm_engine_t *engine(void) {
    wasm_config_t *config = wasm_config_new();
    wasmtime_config_consume_fuel_set(config, true);
    wasmtime_config_concurrency_support_set(config, false);
    wasmtime_config_wasm_threads_set(config, false);
    wasmtime_config_shared_memory_set(config, false);
    wasmtime_config_wasm_gc_set(config, false);
    wasmtime_config_gc_support_set(config, false);
    wasmtime_config_wasm_function_references_set(config, false);
    wasmtime_config_wasm_exceptions_set(config, false);
    wasmtime_config_wasm_stack_switching_set(config, false);
    return wasm_engine_new_with_config(config);
}

static wasmtime_component_t *compile(wasm_engine_t *engine, const char *name) {
    FILE *file = fopen(name, "rb");
    if (file == NULL) {
        perror(name);
        exit(2);
    }
    uint8_t *bytes = NULL;
    size_t size = 0, room = 0, count = 0;
    do {
        size += count;
        if (room - size < 65536 && (bytes = realloc(bytes, room = 2 * room + 65536)) == NULL) {
            abort();
        }
        count = fread(bytes + size, 1, room - size, file);
    } while (count > 0);
    fclose(file);
    wasmtime_component_t *component = NULL;
    check(wasmtime_component_new(engine, bytes, size, &component), name);
    free(bytes);
    return component;
}

struct machine *machine_load(const char *file) {
    struct machine *machine = calloc(1, sizeof(*machine));
    if (machine == NULL) {
        abort();
    }
    machine->engine = engine();
    const char *suffix = strrchr(file, '.');
    if (suffix != NULL && strcmp(suffix, ".cwasm") == 0) {
        check(wasmtime_component_deserialize_file(machine->engine, file, &machine->component), file);
    } else {
        machine->component = compile(machine->engine, file);
    }
    machine->store = wasmtime_store_new(machine->engine, NULL, NULL);
    machine->context = wasmtime_store_context(machine->store);
    wasmtime_store_limiter(machine->store, MEMORY_BYTES, -1, -1, -1, -1);
    /* Instantiating runs instructions too. */
    check(wasmtime_context_set_fuel(machine->context, FUEL), "fuel");
    /* Nothing is linked, so that a component that imports anything is refused. */
    machine->linker = wasmtime_component_linker_new(machine->engine);
    check(wasmtime_component_linker_instantiate(machine->linker, machine->context, machine->component,
                                                &machine->instance),
          file);
    return machine;
}

void machine_free(struct machine *machine) {
    wasmtime_component_linker_delete(machine->linker);
    wasmtime_component_delete(machine->component);
    wasmtime_store_delete(machine->store);
    wasm_engine_delete(machine->engine);
    free(machine);
}

static struct function *find(struct machine *machine, const char *interface, const char *name) {
    for (size_t at = 0; at < machine->known; at++) {
        struct function *known = &machine->functions[at];
        if (strcmp(known->name, name) == 0 && strcmp(known->interface, interface) == 0) {
            return known;
        }
    }
    struct function *function = &machine->functions[machine->known++];
    function->interface = interface;
    function->name = name;
    wasmtime_component_export_index_t *outer =
        wasmtime_component_get_export_index(machine->component, NULL, interface, strlen(interface));
    wasmtime_component_export_index_t *inner =
        outer == NULL ? NULL : wasmtime_component_get_export_index(machine->component, outer, name, strlen(name));
    if (machine->known == MOST_FUNCTIONS || inner == NULL ||
        !wasmtime_component_instance_get_func(&machine->instance, machine->context, inner, &function->function)) {
        fprintf(stderr, "the component has no `%s` in `%s`\n", name, interface);
        exit(2);
    }
    wasmtime_component_func_type_t *type = wasmtime_component_func_type(&function->function, machine->context);
    wasmtime_component_valtype_t result;
    if (wasmtime_component_func_type_result(type, &result)) {
        function->results = 1;
        wasmtime_component_valtype_delete(&result);
    }
    wasmtime_component_func_type_delete(type);
    wasmtime_component_export_index_delete(inner);
    wasmtime_component_export_index_delete(outer);
    return function;
}

value machine_call(struct machine *machine, const char *interface, const char *name, size_t count,
                   value *arguments) {
    struct function *function = find(machine, interface, name);
    /* It is overwritten as a value is, so it has to be one. */
    value result = boolean(false);
    /* Every call has the whole of it, whatever the last one left. */
    check(wasmtime_context_set_fuel(machine->context, FUEL), "fuel");
    check(wasmtime_component_func_call(&function->function, machine->context, arguments, count, &result,
                                       function->results),
          name);
    for (size_t at = 0; at < count; at++) {
        discard(&arguments[at]);
    }
    return result;
}

void machine_refused(const value *error) {
    struct slice name = name_of(error);
    struct slice detail = is(error, "store") ? text_in(get(payload(error), "detail")) : (struct slice){"", 0};
    fprintf(stderr, "refused: %.*s %.*s\n", (int)name.size, name.data, (int)detail.size, detail.data);
    exit(2);
}

struct resource resource_of(value *result) {
    const value *error = error_of(result);
    if (error != NULL) {
        machine_refused(error);
    }
    struct resource resource = {wasmtime_component_resource_any_clone(result->of.result.val->of.resource)};
    discard(result);
    return resource;
}

value borrow(const struct resource *resource) {
    return (value){.kind = WASMTIME_COMPONENT_RESOURCE,
                   .of.resource = wasmtime_component_resource_any_clone(resource->any)};
}

void resource_free(struct machine *machine, struct resource *resource) {
    check(wasmtime_component_resource_any_drop(machine->context, resource->any), "drop");
    wasmtime_component_resource_any_delete(resource->any);
}
