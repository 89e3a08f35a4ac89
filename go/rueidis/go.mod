module code.invalid/leasehold/go/rueidis

go 1.26.0

replace code.invalid/leasehold/go => ../

require (
	code.invalid/leasehold/go v0.0.0
	github.com/redis/rueidis v1.0.79
)

require golang.org/x/sys v0.47.0 // indirect
