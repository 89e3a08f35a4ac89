/* What CMake would write here for a wasmtime with components, and with what can compile them. */
#ifndef WASMTIME_CONF_H
#define WASMTIME_CONF_H

#define WASMTIME_FEATURE_COMPONENT_MODEL
#define WASMTIME_FEATURE_COMPILER
#define WASMTIME_FEATURE_GC
#define WASMTIME_FEATURE_THREADS

#endif
