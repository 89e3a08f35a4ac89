module code.invalid/leasehold/go/otel

go 1.26.0

replace code.invalid/leasehold/go => ../

require (
	code.invalid/leasehold/go v0.0.0
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/metric v1.47.0
)

require github.com/cespare/xxhash/v2 v2.3.0 // indirect
