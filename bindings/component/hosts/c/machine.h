/* The component, loaded and bounded, and its functions by name. */
#ifndef MACHINE_H
#define MACHINE_H

#include <wasmtime/component.h>

#include "value.h"

#define CLIENT "leasehold:protocol/client@0.1.0"
#define FENCE "leasehold:protocol/fence@0.1.0"

struct machine;

/* One instance. The file is a `.wasm`, or a `.cwasm` that was compiled by the same wasmtime: that is machine code, and
 * must come from where only those can write who may change the program itself. Ends the program where it cannot be
 * loaded. */
struct machine *machine_load(const char *file);
void machine_free(struct machine *machine);

/* Ends the program, and says which setting or command was refused. */
_Noreturn void machine_refused(const value *error);

/* Calls a function of an interface, and answers its result, or a value without meaning where it has none. The
 * arguments are used up. Ends the program where the component has trapped or run out of something: its leases are lost
 * then, and run out by themselves. Names are kept, not copied. */
value machine_call(struct machine *machine, const char *interface, const char *function, size_t count,
                   value *arguments);

#define CALL(machine, interface, function, ...)                                                                        \
    machine_call(machine, interface, function, sizeof((value[]){__VA_ARGS__}) / sizeof(value), (value[]){__VA_ARGS__})

/* A resource out of the result of the function that makes it. A call borrows it: pass `borrow`. */
struct resource {
    wasmtime_component_resource_any_t *any;
};

/* Takes it out of a result, or ends the program where that is an error. */
struct resource resource_of(value *result);
value borrow(const struct resource *resource);
void resource_free(struct machine *machine, struct resource *resource);

#endif
